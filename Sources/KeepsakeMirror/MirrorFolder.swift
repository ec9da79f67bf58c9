import Foundation
import KeepsakePlatform
package import KeepsakeStore

/// What exists at a path of the mirrored folder.
enum DiskState: Hashable, Sendable {
  case absent
  case file(FileSignature)
  /// Something that isn't a plain file in plain folders, or that can't be examined: neither a save nor a deleted one.
  case blocked

  var signature: FileSignature? {
    if case .file(let signature) = self { signature } else { nil }
  }
}

/// A temporary beside a save, named so that it can be recognized after a crash.
struct Temporary: Hashable, Sendable {
  /// The folder it is in, as components; empty for the root.
  var folder: [String]
  var name: String
}

/// The mirrored folder, traversed component by component from one open descriptor: no name, from the disk or from the
/// cloud, leads out of it, and no symbolic link in it is followed.
final class MirrorFolder {
  /// The prefix of a temporary that is being written, and has never been at a save's path.
  static let partPrefix = ".keepsake-part-"
  /// The prefix of a temporary that is complete and is about to be, or has been, at a save's path.
  static let swapPrefix = ".keepsake-swap-"
  /// More than any game has; limits the memory and the time of a scan.
  static let maximumEntries = 200_000

  let path: String
  private let root: Descriptor
  private let identity: FileIdentity
  private let state: FileIdentity?
  let selection: MirrorSelection

  /// Opens `path`, excluding the folder `state` if it is inside.
  ///
  /// - Throws: `MirrorError` if there is no such folder.
  init(path: String, state: String?, selection: MirrorSelection = .everything) throws(MirrorError) {
    self.path = path
    self.selection = selection
    root = try Descriptor(folder: path)
    identity = FileIdentity(try root.status(path: path))
    if let state {
      self.state = FileIdentity(try Descriptor(folder: state).status(path: state))
    } else {
      self.state = nil
    }
  }

  /// Ensures that the folder is still the one that was opened: one that was unmounted or replaced must not look as if
  /// every save had been deleted.
  func checkInPlace() throws(MirrorError) {
    var status = stat()
    guard stat(path, &status) == 0, FileIdentity(status) == identity else {
      throw MirrorError(
        .folder, "the folder is no longer there, or was replaced by another one; start again once it is back",
        path: path)
    }
  }

  func isState(_ other: FileIdentity) -> Bool { other == state }

  /// Opens the folder that `path` is in; nil if a folder on the way doesn't exist.
  ///
  /// - Throws: `MirrorError.Code.blocked` if something on the way isn't a folder or is the state folder.
  func parent(of path: SavePath, creating: Bool = false) throws(MirrorError) -> Descriptor? {
    try folder(path.components.dropLast(), creating: creating, path: path.text)
  }

  func folder(_ components: some Collection<String>, creating: Bool = false, path: String) throws(MirrorError)
    -> Descriptor?
  {
    var current = try Descriptor(opening: ".", in: root.number, flags: O_RDONLY | O_DIRECTORY, path: path)
    for component in components {
      if creating, mkdirat(current.number, component, 0o777) != 0, errno != EEXIST {
        throw .system("create the folder \"\(component)\"", errno, path: path)
      }
      do throws(MirrorError) {
        current = try Descriptor(opening: component, in: current.number, flags: O_RDONLY | O_DIRECTORY, path: path)
      } catch {
        switch error.errorNumber {
        case ENOENT: return nil
        case ELOOP, ENOTDIR:
          throw MirrorError(.blocked, "\"\(component)\" in its path is not an ordinary folder", path: path)
        default: throw error
        }
      }
      if FileIdentity(try current.status(path: path)) == state {
        throw MirrorError(.blocked, "the path leads into Keepsake's own folder", path: path)
      }
    }
    return current
  }

  /// Whether something that isn't a folder, or nothing, is at this path.
  func lacksFolder(_ components: [String]) throws(MirrorError) -> Bool {
    do {
      return try folder(components, path: components.joined(separator: "/")) == nil
    } catch {
      if error.code == .blocked { return true }
      throw error
    }
  }

  /// Returns what currently exists at `path`.
  func status(of path: SavePath) -> DiskState {
    do {
      guard let parent = try parent(of: path) else { return .absent }
      return Self.status(of: path.components.last ?? "", in: parent.number)
    } catch {
      return .blocked
    }
  }

  static func status(of name: String, in parent: Int32) -> DiskState {
    var status = stat()
    guard fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
      return errno == ENOENT ? .absent : .blocked
    }
    return status.st_mode & S_IFMT == S_IFREG ? .file(FileSignature(status)) : .blocked
  }

  /// Reads the file at `path` if it matches `expected` before, during and after the reading.
  ///
  /// - Returns: Nil if it changed meanwhile, or doesn't exist.
  /// - Throws: `MirrorError`, also for a file of more than `limit` bytes.
  func read(_ path: SavePath, expecting expected: FileSignature, limit: Int) throws(MirrorError) -> Data? {
    let components = path.components
    let name = components.last ?? ""
    // One of thousands of files in the root needs no other descriptor of it.
    if components.count == 1 {
      return try Self.read(name, in: root.number, expecting: expected, limit: limit, path: path.text)
    }
    guard let parent = try parent(of: path) else { return nil }
    return try Self.read(name, in: parent.number, expecting: expected, limit: limit, path: path.text)
  }

  /// Returns nil if there is no such file, or if a link has taken its name.
  private static func openToRead(_ name: String, in parent: Int32, path: String) throws(MirrorError) -> Descriptor? {
    do throws(MirrorError) {
      // Opened without blocking, so that a pipe that replaced the file can't hold up the mirror.
      return try Descriptor(opening: name, in: parent, flags: O_RDONLY | O_NONBLOCK, path: path)
    } catch {
      if error.errorNumber == ENOENT || error.errorNumber == ELOOP { return nil }
      throw error
    }
  }

  static func read(
    _ name: String, in parent: Int32, expecting expected: FileSignature, limit: Int, path: String
  ) throws(MirrorError) -> Data? {
    guard expected.size <= Int64(limit) else {
      throw MirrorError(
        .tooLarge, "the file has \(expected.size) bytes; only files of at most \(limit) bytes are synced", path: path)
    }
    guard let file = try openToRead(name, in: parent, path: path) else { return nil }
    guard FileSignature(try file.status(path: path)) == expected, let size = Int(exactly: expected.size) else {
      return nil
    }
    var data = Data(count: size)
    var done = 0
    while done < size {
      let count = data.withUnsafeMutableBytes { buffer in
        pread(file.number, buffer.baseAddress.map { $0 + done }, size - done, off_t(done))
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw .system("read the file", errno, path: path)
      }
      guard count > 0 else { return nil }
      done += count
    }
    guard FileSignature(try file.status(path: path)) == expected,
      status(of: name, in: parent) == .file(expected)
    else { return nil }
    return data
  }
}

extension FileIdentity {
  init(_ status: borrowing stat) { self.init(FileStatus(status)) }

  /// Identifies the folder at `path`; symbolic links on the way are followed.
  package init(folder path: String) throws(MirrorError) { self.init(try Descriptor(folder: path).status(path: path)) }
}
