import Foundation
import KeepsakeStore
import TestSupport
import Testing

@Suite struct StoreFolderTests {
  @Test("a folder is created with those above it, readable by its owner only if asked for; twice does nothing")
  func creates() throws {
    let folder = try TemporaryFolder()
    let inner = folder.url.appendingPathComponent("games/garden")
    for _ in 1...2 { try StoreFolder.create(inner, isPrivate: true) }
    for url in [inner, inner.deletingLastPathComponent()] {
      let mode = try FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? NSNumber
      #expect(mode?.intValue == 0o700, "\(url.path)")
    }
  }

  @Test("a folder that can't be created says why: a file instead of it or above it, a name that is too long")
  func failures() throws {
    let folder = try TemporaryFolder()
    let file = folder.url.appendingPathComponent("file")
    try Data("here".utf8).write(to: file)
    #expect(errorCode { try StoreFolder.create(file) } == .misuse)
    #expect(errorCode { try StoreFolder.create(file.appendingPathComponent("store")) } == .misuse)
    let long = folder.url.appendingPathComponent(String(repeating: "n", count: 300))
    #expect(errorCode { try StoreFolder.create(long) } == .io)
    #expect(try Data(contentsOf: file) == Data("here".utf8))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["file"])
  }
}
