#if Cloud
import Dispatch
import Foundation
import KeepsakePlatform
import KeepsakeReplication

/// Contents as files in a folder that all servers share, such as one of a network file system.
///
/// A file is written beside the others, is on the disk before it gets its name, and its name is on the disk before
/// anybody counts on it. In a folder that isn't mounted nothing is written, and nothing is said to be gone.
struct ContentFolder: ContentStorage {
  let folder: URL
  let name: String
  private let disk = DiskQueue("keepsake.contents")
  /// What the mark says: below an empty place to mount to there may be another one.
  private let own: Data

  /// What says whose contents these are, and what the folder is called wherever it is mounted.
  private static let mark = "keepsake-cloud"
  /// Where files are until they have all their bytes.
  private static let incoming = "incoming"
  /// Folders that one page of a list looks into.
  private static let foldersAtOnce = 1_024

  /// - Parameters:
  ///   - cloud: Whose contents are kept here. A folder that has nothing yet is marked.
  ///   - mayBeNew: Whether it may have nothing yet.
  /// - Throws: `ServerError` with `configuration` if the folder isn't there, or has something else.
  init(_ folder: URL, for cloud: String, mayBeNew: Bool = true) throws {
    self.folder = folder
    let mark = folder.appendingPathComponent(Self.mark)
    if try PrivateFile.read(mark) == nil {
      guard mayBeNew else {
        throw ServerError(
          .configuration, "\(folder.path) has no contents, and those of this cloud are in a folder: is it mounted?")
      }
      try Self.mark(folder, for: cloud)
    }
    own = try PrivateFile.read(mark) ?? Data()
    let words = String(decoding: own, as: UTF8.self).split(whereSeparator: \.isWhitespace)
    guard words.count == 2, words[0] == cloud else {
      throw ServerError(.configuration, "\(folder.path) has the contents of another cloud: name another folder.")
    }
    name = "folder:\(words[1])"
  }

  /// The name of a folder that has its mark; nil for another one.
  static func name(of folder: URL) throws -> String? {
    guard let mark = try PrivateFile.read(folder.appendingPathComponent(mark)) else { return nil }
    return String(decoding: mark, as: UTF8.self).split(whereSeparator: \.isWhitespace).last.map { "folder:\($0)" }
  }

  private static func mark(_ folder: URL, for cloud: String) throws {
    let found: [String]
    do {
      found = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    } catch {
      throw ServerError(
        .configuration, "The folder of contents \(folder.path) can't be read: create it, empty.", cause: error)
    }
    // Another server may be doing the same.
    guard found.allSatisfy({ $0.hasPrefix(mark) }) else {
      throw ServerError(.configuration, "\(folder.path) has something else than contents: name an empty folder.")
    }
    let own = folder.appendingPathComponent("\(mark)-\(UUID().uuidString)")
    let text = "\(cloud) \(Hexadecimal.text(.random(in: .min ... .max), .random(in: .min ... .max)))\n"
    try PrivateFile.write(Data(text.utf8), to: own)
    defer { unlink(own.path) }
    // The first one stays.
    guard link(own.path, folder.appendingPathComponent(mark).path) == 0 || errno == EEXIST else {
      throw DiskQueue.failure("\(folder.path) can't be marked.")
    }
    try PrivateFile.sync(folder, isFolder: true)
  }

  func put(_ file: URL, as key: ContentKey) async throws {
    try await disk.run { try write(file, as: key) }
  }

  private func write(_ file: URL, as key: ContentKey) throws {
    _ = try ContentFile.size(file)
    try requireMark()
    let incoming = try made(folder, Self.incoming)
    let url = url(key)
    let first = try made(folder, url.deletingLastPathComponent().deletingLastPathComponent().lastPathComponent)
    let second = try made(first, url.deletingLastPathComponent().lastPathComponent)
    let beside = incoming.appendingPathComponent("\(key.name)-\(UInt64.random(in: .min ... .max))")
    do {
      let handle = try PrivateFile.createHandle(beside)
      var offset = 0
      try ContentFile.each(file, piece: 1 << 20) { bytes in
        try bytes.withUnsafeBytes { bytes in
          try DiskQueue.write(bytes, to: handle.fileDescriptor, at: offset) { "\(beside.path) can't be written." }
        }
        offset += bytes.count
      }
      try handle.close()
      try PrivateFile.sync(beside)
      guard rename(beside.path, url.path) == 0 else {
        throw DiskQueue.failure("\(beside.path) can't be renamed to \(url.path).")
      }
    } catch {
      unlink(beside.path)
      throw error
    }
    try PrivateFile.sync(second, isFolder: true)
  }

  /// Makes a folder unless it exists. When this returns, its name is on the disk, even if another server made it.
  private func made(_ parent: URL, _ name: String) throws -> URL {
    let url = parent.appendingPathComponent(name, isDirectory: true)
    guard mkdir(url.path, 0o700) == 0 || errno == EEXIST else {
      throw DiskQueue.failure("The folder \(url.path) can't be created.")
    }
    try PrivateFile.sync(parent, isFolder: true)
    return url
  }

  func size(of key: ContentKey) async throws -> Int? {
    try await disk.run {
      var status = stat()
      guard stat(url(key).path, &status) == 0 else { return try gone(key) }
      return Int(status.st_size)
    }
  }

  func bytes(_ range: Range<Int>, of key: ContentKey) async throws -> Data? {
    try await disk.run {
      let path = url(key).path
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return try gone(key) }
      defer { close(descriptor) }
      var bytes = Data(count: range.count)
      var count = 0
      while count < range.count {
        let step = bytes.withUnsafeMutableBytes { buffer in
          pread(
            descriptor, buffer.baseAddress.map { $0 + count }, range.count - count, off_t(range.lowerBound + count))
        }
        if step < 0, errno == EINTR { continue }
        guard step >= 0 else { throw DiskQueue.failure("\(path) can't be read.") }
        guard step > 0 else { throw ContentStorageError(.damaged, "\(path) is shorter than was put.") }
        count += step
      }
      return bytes
    }
  }

  /// Returns nil for a file that isn't there.
  ///
  /// - Throws: `ServerError` if that can't be told; `ContentStorageError` if all the folder isn't.
  private func gone<Result>(_ key: ContentKey) throws -> Result? {
    guard errno == ENOENT else { throw DiskQueue.failure("\(url(key).path) can't be read.") }
    try requireMark()
    return nil
  }

  private func requireMark() throws {
    guard try PrivateFile.read(folder.appendingPathComponent(Self.mark)) != own else { return }
    throw ContentStorageError(.notThere, "\(folder.path) isn't the folder of contents that it was: is it mounted?")
  }

  func delete(_ key: ContentKey) async throws {
    try await disk.run {
      let url = url(key)
      if unlink(url.path) != 0 {
        let _: Int? = try gone(key)
        return
      }
      try PrivateFile.sync(url.deletingLastPathComponent(), isFolder: true)
    }
  }

  private func url(_ key: ContentKey) -> URL { folder.appendingPathComponent(key.text) }

  // MARK: Listing

  func list(_ prefix: String, after place: String?, limit: Int) async throws -> ContentPage {
    try await disk.run { try page(prefix, after: place ?? "", limit) }
  }

  private func page(_ prefix: String, after place: String, _ limit: Int) throws -> ContentPage {
    try requireMark()
    var page = ContentPage()
    var folders = 0
    /// The names in a folder that may have keys after the place; those before it aren't looked into.
    func names(_ path: String) throws -> [String] {
      try Self.names(folder.appendingPathComponent(path)).filter { name in
        let text = path + name
        return (text.hasPrefix(prefix) || prefix.hasPrefix(text)) && (text > place || place.hasPrefix(text))
      }
    }
    for first in try names("") where first.utf8.count == 2 {
      for second in try names("\(first)/") where second.utf8.count == 2 {
        let path = "\(first)/\(second)/"
        folders += 1
        for name in try names(path) {
          guard let key = ContentKey(text: path + name), key.text > place else { continue }
          guard let milliseconds = try Self.modified(url(key)) else { continue }
          guard page.entries.count < limit else {
            page.next = page.entries.last?.key.text
            return page
          }
          page.entries.append(ContentPage.Entry(key: key, storedMilliseconds: milliseconds))
        }
        if folders == Self.foldersAtOnce {
          // Behind all that is in it.
          page.next = path + "~"
          return page
        }
      }
    }
    return page
  }

  func tidy(before milliseconds: Int64) async throws {
    try await disk.run {
      try requireMark()
      let incoming = folder.appendingPathComponent(Self.incoming)
      for name in try Self.names(incoming) {
        let file = incoming.appendingPathComponent(name)
        guard let written = try Self.modified(file), written < milliseconds else { continue }
        guard unlink(file.path) == 0 || errno == ENOENT else {
          throw DiskQueue.failure("\(file.path) can't be removed.")
        }
      }
    }
  }

  /// Sorted as bytes are; none for a folder that isn't there.
  private static func names(_ folder: URL) throws -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      return []
    } catch {
      throw ServerError(.inputOutput, "The folder \(folder.path) can't be read.", cause: error)
    }
  }

  /// When a file was written last; nil if it is gone.
  private static func modified(_ file: URL) throws -> Int64? {
    var status = stat()
    guard stat(file.path, &status) == 0 else {
      guard errno == ENOENT else { throw DiskQueue.failure("\(file.path) can't be examined.") }
      return nil
    }
    return FileTime.modified(status).seconds * 1000
  }
}
#endif
