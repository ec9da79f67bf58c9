import Foundation
import KeepsakePlatform
import KeepsakeReplication

extension MirrorFolder {
  /// Writes `bytes` into a temporary beside `path`, syncs it to the disk, and marks it complete by its name.
  func writeTemporary(_ bytes: Data, beside path: SavePath, using random: inout some RandomNumberGenerator)
    throws(MirrorError) -> Temporary
  {
    guard let parent = try parent(of: path, creating: true) else {
      throw MirrorError(.io, "its folder disappeared while it was being created", path: path.text)
    }
    let suffix = path.tag + "-" + Hexadecimal.text(random.next())
    let part = Self.partPrefix + suffix
    let mode = Self.mode(of: path.components.last ?? "", in: parent.number)
    do throws(MirrorError) {
      let file = try Descriptor(
        opening: part, in: parent.number, flags: O_WRONLY | O_CREAT | O_EXCL, mode: mode ?? 0o666, path: path.text)
      try Self.write(bytes, to: file, path: path.text)
      // The process's umask has removed bits that the file in place has.
      if let mode, fchmod(file.number, mode) != 0 { throw .system("set the permissions", errno, path: path.text) }
      try file.synchronize(path: path.text)
    } catch {
      unlinkat(parent.number, part, 0)
      throw error
    }
    let complete = Self.swapPrefix + suffix
    guard renameat(parent.number, part, parent.number, complete) == 0 else {
      throw .system("rename the new file", errno, path: path.text)
    }
    return Temporary(folder: path.components.dropLast(), name: complete)
  }

  /// Exchanges `temporary` and the file at `path`; durable after `synchronize`.
  ///
  /// - Returns: The temporary that is now the old file; nil if there was none, and nothing was changed.
  func exchange(_ temporary: Temporary, with path: SavePath) throws(MirrorError) -> Temporary? {
    guard let parent = try folder(temporary.folder, path: path.text) else { return nil }
    let name = path.components.last ?? ""
    guard case .file = Self.status(of: name, in: parent.number) else { return nil }
    guard let old = try AtomicRename.exchange(temporary.name, name, spare: temporary.name + "-old", in: parent.number)
    else { return nil }
    return Temporary(folder: temporary.folder, name: old)
  }

  /// Moves `temporary` to `path` if nothing exists there.
  ///
  /// - Returns: False if something exists there, and nothing was changed.
  func place(_ temporary: Temporary, at path: SavePath) throws(MirrorError) -> Bool {
    guard let parent = try folder(temporary.folder, path: path.text) else { return false }
    let placed = try AtomicRename.renameToFree(temporary.name, path.components.last ?? "", in: parent.number)
    if placed { try parent.synchronize(path: path.text) }
    return placed
  }

  /// Moves the file at `path` aside; durable after `synchronize`.
  ///
  /// - Returns: The temporary that is now the file; nil if there was none.
  func takeAway(_ path: SavePath, using random: inout some RandomNumberGenerator) throws(MirrorError) -> Temporary? {
    guard let parent = try parent(of: path) else { return nil }
    let aside = Self.swapPrefix + path.tag + "-" + Hexadecimal.text(random.next())
    guard renameat(parent.number, path.components.last ?? "", parent.number, aside) == 0 else {
      if errno == ENOENT { return nil }
      throw .system("move the file away", errno, path: path.text)
    }
    return Temporary(folder: path.components.dropLast(), name: aside)
  }

  /// Makes the names in a folder durable.
  func synchronize(_ components: [String], path: SavePath) throws(MirrorError) {
    guard let parent = try folder(components, path: path.text) else { return }
    try parent.synchronize(path: path.text)
  }

  func status(of temporary: Temporary) throws(MirrorError) -> DiskState {
    guard let parent = try folder(temporary.folder, path: temporary.name) else { return .absent }
    return Self.status(of: temporary.name, in: parent.number)
  }

  func read(_ temporary: Temporary, expecting expected: FileSignature, limit: Int) throws(MirrorError) -> Data? {
    guard let parent = try folder(temporary.folder, path: temporary.name) else { return nil }
    return try Self.read(temporary.name, in: parent.number, expecting: expected, limit: limit, path: temporary.name)
  }

  func discard(_ temporary: Temporary) throws(MirrorError) {
    guard let parent = try folder(temporary.folder, path: temporary.name) else { return }
    guard unlinkat(parent.number, temporary.name, 0) == 0 || errno == ENOENT else {
      throw .system("remove a temporary file", errno, path: temporary.name)
    }
  }

  private static func mode(of name: String, in parent: Int32) -> mode_t? {
    var status = stat()
    guard fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
    return status.st_mode & 0o777
  }

  private static func write(_ bytes: Data, to file: borrowing Descriptor, path: String) throws(MirrorError) {
    var done = 0
    while done < bytes.count {
      let number = file.number
      let count = bytes.withUnsafeBytes { buffer in
        SystemCall.write(number, buffer.baseAddress.map { $0 + done }, bytes.count - done)
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw .system("write the new file", errno, path: path)
      }
      done += count
    }
  }
}
