import Foundation
import KeepsakePlatform
import KeepsakeStore

/// Everything that a scan found.
struct FolderListing {
  var files: [SavePath: FileSignature] = [:]
  /// Names that can't be mirrored, with the reason.
  var issues: [MirrorIssue] = []
  /// Temporaries of this or an earlier run.
  var temporaries: [Temporary] = []
  /// Entries seen, of every kind.
  fileprivate var entries = 0
  /// What slots' names have before the paths here.
  fileprivate var prefix: Result<SavePath?, SavePathRefusal> = .success(nil)
}

/// Something in the folder, or named by the cloud, that isn't mirrored, with the reason.
package struct MirrorIssue: Hashable, Sendable, Codable {
  /// As the disk or the cloud names it: control characters must be escaped when it is printed.
  package var path: String
  package var message: String

  package init(path: String, message: String) {
    self.path = path
    self.message = message
  }
}

extension MirrorFolder {
  /// Lists every plain file in the folder and its subfolders.
  ///
  /// What isn't a plain file or a plain folder is reported and left alone. Costs one stat per entry.
  ///
  /// - Throws: `MirrorError` if the root can't be listed, or contains too much. A folder inside that can't be listed is
  ///   an issue; its files then count neither as existing nor as deleted (`status(of:)` decides).
  func scan() throws(MirrorError) -> FolderListing {
    try checkInPlace()
    var listing = FolderListing()
    listing.prefix = selection.prefixPath
    guard let top = try folder([], path: path) else { return listing }
    try scan(top, of: nil, at: [], into: &listing)
    return listing
  }

  /// - Parameters:
  ///   - whole: The folder's path; nil for the root.
  ///   - components: Those of the path.
  private func scan(
    _ folder: borrowing Descriptor, of whole: SavePath?, at components: [String], into listing: inout FolderListing
  ) throws(MirrorError) {
    let names = try Self.names(in: folder, path: components.joined(separator: "/"))
    listing.files.reserveCapacity(listing.files.count + names.count)
    for name in names {
      listing.entries += 1
      guard listing.entries <= Self.maximumEntries else {
        throw MirrorError(
          .tooMany, "the folder has more than \(Self.maximumEntries) entries; mirror a smaller one", path: path)
      }
      let text = String(validating: name, as: UTF8.self)
      let shown = text ?? String(decoding: name, as: UTF8.self)
      if SavePath.isReserved(name) {
        note(temporary: shown, at: components, in: &listing)
        continue
      }
      let parts = components + [shown]
      guard selection.takes(parts) || selection.leads(parts) else { continue }
      do {
        guard let text else { throw SavePathRefusal.notUnicode }
        let path = try SavePath(name, in: whole, behind: listing.prefix.get())
        try scan(path, called: text, at: parts, in: folder, into: &listing)
      } catch {
        if let error = error as? MirrorError, error.code == .tooMany { throw error }
        let message =
          (error as? SavePathRefusal)?.message ?? (error as? MirrorError)?.message ?? String(describing: error)
        listing.issues.append(MirrorIssue(path: parts.joined(separator: "/"), message: message))
      }
    }
  }

  private func scan(
    _ path: SavePath, called name: String, at components: [String], in folder: borrowing Descriptor,
    into listing: inout FolderListing
  ) throws {
    var status = stat()
    guard fstatat(folder.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
      if errno == ENOENT { return }
      throw MirrorError.system("examine it", errno, path: path.text)
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG:
      guard selection.takes(components) else { return }
      listing.files[path] = FileSignature(status)
    case S_IFDIR:
      guard selection.leads(components) else { return }
      guard !isState(FileIdentity(status)) else { return }
      let inner = try Descriptor(opening: name, in: folder.number, flags: O_RDONLY | O_DIRECTORY, path: path.text)
      try scan(inner, of: path, at: components, into: &listing)
    case S_IFLNK:
      throw MirrorError(
        .blocked, "symbolic links are not followed; put the file itself here to sync it", path: path.text)
    default:
      throw MirrorError(.blocked, "not a regular file; it is left alone", path: path.text)
    }
  }

  private func note(temporary name: String, at components: [String], in listing: inout FolderListing) {
    guard name.hasPrefix(Self.partPrefix) || name.hasPrefix(Self.swapPrefix) else { return }
    listing.temporaries.append(Temporary(folder: components, name: name))
  }

  /// The names in a folder, sorted by bytes.
  private static func names(in folder: borrowing Descriptor, path: String) throws(MirrorError) -> [[UInt8]] {
    // The stream takes over the descriptor that it is given, and shares its position with copies, so it gets one of its
    // own.
    let own = openat(folder.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard own >= 0 else { throw .system("open the folder", errno, path: path) }
    guard let stream = fdopendir(own) else {
      let number = errno
      close(own)
      throw .system("open the folder", number, path: path)
    }
    defer { closedir(stream) }
    var names: [[UInt8]] = []
    errno = 0
    while let entry = readdir(stream) {
      let name = Self.name(of: entry)
      if name != [UInt8(ascii: ".")], name != [UInt8(ascii: "."), UInt8(ascii: ".")] { names.append(name) }
      guard names.count <= maximumEntries else {
        throw MirrorError(
          .tooMany, "the folder has more than \(maximumEntries) entries; mirror a smaller one", path: path)
      }
      errno = 0
    }
    guard errno == 0 else { throw .system("list the folder", errno, path: path) }
    return names.sorted { left, right in
      let order = memcmp(left, right, min(left.count, right.count))
      return order != 0 ? order < 0 : left.count < right.count
    }
  }

  private static func name(of entry: UnsafeMutablePointer<dirent>) -> [UInt8] {
    // Read in place: copying the entry would read beyond one that is shorter than its type.
    guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return [] }
    let start = UnsafeRawPointer(entry) + offset
    return Array(UnsafeRawBufferPointer(start: start, count: strlen(start.assumingMemoryBound(to: CChar.self))))
  }
}
