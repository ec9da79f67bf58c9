import Foundation
import KeepsakeStore
import TestSupport
import Testing

#if canImport(Glibc)
import Glibc
#endif

@Suite struct AtomicFileTests {
  @Test("a file is replaced as a whole, nothing is left beside it, and different failures throw different errors")
  func replaces() throws {
    let folder = try TemporaryFolder()
    let file = folder.url.appendingPathComponent("save.bin")
    try AtomicFile.write(Data("one".utf8), to: file)
    try AtomicFile.write(Data(count: 3_000_000), to: file)
    #expect(try Data(contentsOf: file) == Data(count: 3_000_000))
    try AtomicFile.write(Data(), to: file)
    #expect(try Data(contentsOf: file).isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["save.bin"])
    #expect(errorCode { try AtomicFile.write(Data(), to: folder.url.appendingPathComponent("no/where")) } == .missing)
    // Renaming onto a folder fails after the bytes are written: they must not stay.
    let taken = folder.url.appendingPathComponent("taken")
    try FileManager.default.createDirectory(at: taken, withIntermediateDirectories: true)
    #expect(errorCode { try AtomicFile.write(Data("x".utf8), to: taken) } == .io)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted() == ["save.bin", "taken"])
  }

  @Test("a file of secrets is readable by its owner only")
  func secrets() throws {
    let folder = try TemporaryFolder()
    let file = folder.url.appendingPathComponent("token")
    try AtomicFile.write(Data("secret".utf8), to: file, access: .ownerOnly)
    let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? NSNumber
    #expect(mode?.intValue == 0o600)
  }

  @Test("reading a pipe or a folder in place of a file throws instead of waiting for a writer", .hangLimit)
  func readsRegularFilesOnly() throws {
    let folder = try TemporaryFolder()
    let pipe = folder.url.appendingPathComponent("pipe")
    try #require(mkfifo(pipe.path, 0o600) == 0)
    #expect(errorCode { _ = try AtomicFile.read(pipe, maximumBytes: 10) } == .io)
    #expect(errorCode { _ = try AtomicFile.read(folder.url, maximumBytes: 10) } == .io)
    // Where a pipe is accepted, its writer is waited for.
    let writer = Thread { try? FileHandle(forWritingTo: pipe).write(contentsOf: Data("secret".utf8)) }
    writer.start()
    #expect(try AtomicFile.read(pipe, maximumBytes: 10, acceptsPipes: true) == Data("secret".utf8))
    #expect(try AtomicFile.read(folder.url.appendingPathComponent("nothing"), maximumBytes: 10) == nil)
  }
}
