import Foundation
import KeepsakePlatform
import TestSupport
import Testing

@Suite struct SystemFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func path(_ name: String) -> String { folder.url.appendingPathComponent(name).path }

  private func write(_ text: String, to name: String) throws {
    try Data(text.utf8).write(to: folder.url.appendingPathComponent(name))
  }

  /// What a call returned, and the reason that it left.
  private func outcome(_ call: @autoclosure () -> Int32) -> (result: Int32, number: Int32) {
    errno = 0
    let result = call()
    return (result, errno)
  }

  private func names(_ opened: Int32) -> [String] {
    var names: [String] = []
    #expect(SystemCall.forEachName(in: opened) { names.append(String(decoding: $0, as: UTF8.self)) } == 0)
    return names.sorted()
  }

  // MARK: Status

  @Test("a status says what is there, and follows a link only if asked to")
  func kinds() throws {
    try write("twelve bytes", to: "file")
    try FileManager.default.createDirectory(atPath: path("inner"), withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(atPath: path("link"), withDestinationPath: path("file"))
    try #require(mkfifo(path("pipe"), 0o600) == 0)
    let file = try #require(FileStatus(at: path("file")))
    #expect(file.kind == .file && file.size == 12)
    #expect(FileStatus(at: path("inner"))?.kind == .folder)
    #expect(FileStatus(at: path("pipe"))?.kind == .other)
    #expect(FileStatus(at: path("link")) == file)
    #expect(FileStatus(at: path("link"), followsLinks: false)?.kind == .link)
    let opened = SystemCall.openFile(folder.url.path, .folder)
    try #require(opened >= 0)
    defer { SystemCall.closeFile(opened) }
    #expect(FileStatus(of: opened)?.kind == .folder)
    #expect(FileStatus(of: "file", in: opened) == file)
    #expect(FileStatus(of: "link", in: opened)?.kind == .link)
  }

  @Test("a status has the times that the file system has, and tells files apart, whatever their names")
  func times() throws {
    try write("one", to: "one")
    try write("two", to: "two")
    let date = Date(timeIntervalSince1970: 1_000_000_000.25)
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path("one"))
    let one = try #require(FileStatus(at: path("one")))
    #expect(one.modified.nanoseconds == 1_000_000_000_250_000_000)
    #expect(abs(Double(one.changed.seconds) - Date().timeIntervalSince1970) < 600)
    try FileManager.default.linkItem(atPath: path("one"), toPath: path("other"))
    let (other, two) = (try #require(FileStatus(at: path("other"))), try #require(FileStatus(at: path("two"))))
    #expect(other.inode == one.inode && other.device == one.device)
    #expect(two.inode != one.inode && two.device == one.device)
  }

  @Test("what can't be examined has no status, and the reason is the system's")
  func noStatus() throws {
    try write("", to: "file")
    #expect(outcome(FileStatus(at: path("nothing")) == nil ? 1 : 0) == (1, ENOENT))
    #expect(outcome(FileStatus(at: path("file/inner")) == nil ? 1 : 0) == (1, ENOTDIR))
    #expect(outcome(FileStatus(of: -1) == nil ? 1 : 0) == (1, EBADF))
  }

  // MARK: Listing

  @Test("a folder's names are listed as they are, without those for itself and the folder above")
  func listing() throws {
    #expect(names(SystemCall.openFile(folder.url.path, .folder)).isEmpty)
    for name in ["b", ".hidden", "ä"] { try write("", to: name) }
    let opened = SystemCall.openFile(folder.url.path, .folder)
    try #require(opened >= 0)
    defer { SystemCall.closeFile(opened) }
    // A dot opens the folder once more, and listing closes that.
    for _ in 0..<2 { #expect(names(SystemCall.openFile(".", in: opened, .folder)) == [".hidden", "b", "ä"]) }
  }

  @Test("an error ends the listing")
  func listingEnds() throws {
    for name in ["a", "b"] { try write("", to: name) }
    let opened = SystemCall.openFile(folder.url.path, .folder)
    try #require(opened >= 0)
    var count = 0
    #expect(throws: CancellationError.self) {
      _ = try SystemCall.forEachName(in: opened) { _ throws(CancellationError) in
        count += 1
        throw CancellationError()
      }
    }
    #expect(count == 1)
  }

  @Test("what isn't a folder isn't opened as one, and a link isn't opened as a plain one")
  func folders() throws {
    try write("", to: "file")
    try FileManager.default.createSymbolicLink(atPath: path("link"), withDestinationPath: folder.url.path)
    #expect(outcome(SystemCall.openFile(path("file"), .folder)) == (-1, ENOTDIR))
    #expect(outcome(SystemCall.openFile(path("nothing"), .folder)) == (-1, ENOENT))
    #expect([ELOOP, ENOTDIR].contains(outcome(SystemCall.openFile(path("link"), .plainFolder)).number))
    #expect(names(SystemCall.openFile(path("link"), .folder)) == ["file", "link"])
  }

  // MARK: Files

  @Test("a new file takes no name that is taken, and a plain one is no link")
  func opening() throws {
    try write("bytes", to: "file")
    try FileManager.default.createSymbolicLink(atPath: path("link"), withDestinationPath: path("file"))
    #expect(outcome(SystemCall.openFile(path("file"), .creating, mode: 0o600)) == (-1, EEXIST))
    #expect(outcome(SystemCall.openFile(path("link"), .readingPlain)) == (-1, ELOOP))
    let file = SystemCall.openFile(path("link"), .reading)
    try #require(file >= 0)
    defer { SystemCall.closeFile(file) }
    #expect(SystemCall.mapFile(file, size: 5) == Data("bytes".utf8))
    var bytes: [UInt8] = [0, 0, 0, 0]
    #expect(SystemCall.readFile(file, &bytes, 4, at: 3) == 2)
    #expect(bytes == Array("es\0\0".utf8))
    #expect(SystemCall.readFile(file, &bytes, 4, at: 9) == 0)
  }

  @Test("a file that is locked can't be locked again until it is unlocked")
  func locking() throws {
    let files = (0..<2).map { _ in SystemCall.openFile(path("lock"), .locking, mode: 0o600) }
    try #require(files.allSatisfy { $0 >= 0 })
    defer { for file in files { SystemCall.closeFile(file) } }
    #expect(SystemCall.lockFile(files[0]) == 0)
    #expect(outcome(SystemCall.lockFile(files[1])) == (-1, EWOULDBLOCK))
    SystemCall.unlockFile(files[0])
    #expect(SystemCall.lockFile(files[1]) == 0)
  }

  @Test("renaming replaces a file and an empty folder; a name is given only if it is free")
  func renaming() throws {
    try write("new", to: "new")
    try write("old", to: "old")
    #expect(outcome(SystemCall.nameFile(path("new"), path("old"))) == (-1, EEXIST))
    #expect(SystemCall.renameFile(path("new"), path("old")) == 0)
    #expect(try Data(contentsOf: URL(filePath: path("old"))) == Data("new".utf8))
    #expect(SystemCall.nameFile(path("old"), path("free")) == 0)
    #expect(SystemCall.isThere(path("free")) && !SystemCall.isThere(path("new")))
    for name in ["one", "two", "full"] { #expect(SystemCall.makeFolder(path(name)) == 0) }
    try write("", to: "full/file")
    #expect(outcome(SystemCall.makeFolder(path("one"))) == (-1, EEXIST))
    #expect(SystemCall.renameFile(path("one"), path("two")) == 0)
    #expect([ENOTEMPTY, EEXIST].contains(outcome(SystemCall.renameFile(path("two"), path("full"))).number))
    #expect(SystemCall.removeFile(path("free")) == 0)
    #expect(outcome(SystemCall.removeFile(path("free"))) == (-1, ENOENT))
  }
}
