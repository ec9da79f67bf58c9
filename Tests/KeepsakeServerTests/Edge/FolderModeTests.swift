#if Cloud
import Foundation
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("What other users of the machine can read")
struct FolderModeTests {
  private func mode(_ url: URL) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
    return try #require(attributes[.posixPermissions] as? NSNumber).intValue
  }

  /// Everything in a folder, and the folder.
  private func all(in folder: URL) throws -> [URL] {
    try [folder] + FileManager.default.subpathsOfDirectory(atPath: folder.path).map(folder.appendingPathComponent)
  }

  @Test("a data folder that everybody could read is closed at the start, with all files in it")
  func existingFolder() async throws {
    try await TemporaryFolder.with { parent in
      let folder = parent.appendingPathComponent("data")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let first = try await LiveServer.start(data: folder)
      _ = try await first.client.register()
      try await first.stop()
      // As an earlier release left it, in a folder that mkdir made.
      for url in try all(in: folder) {
        var isFolder: ObjCBool = false
        _ = FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder)
        try FileManager.default.setAttributes(
          [.posixPermissions: isFolder.boolValue ? 0o755 : 0o644], ofItemAtPath: url.path)
      }
      let server = try await LiveServer.start(data: folder)
      _ = try await server.client.register()
      let urls = try all(in: folder)
      for url in urls { #expect(try mode(url) & 0o077 == 0, "\(url.lastPathComponent)") }
      let names = Set(urls.map(\.lastPathComponent))
      #expect(names.isSuperset(of: ["cloud.sqlite", "cloud.sqlite-wal", "cloud.sqlite-shm", "secret", "app-key"]))
      try await server.stop()
    }
  }

  @Test("a folder that mkdir made gets files that only the owner can read, from the first start on")
  func newFolder() async throws {
    try await TemporaryFolder.with { parent in
      let folder = parent.appendingPathComponent("data")
      try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o777])
      let server = try await LiveServer.start(data: folder)
      let (client, _) = try await server.client.register()
      _ = client
      for url in try all(in: folder) { #expect(try mode(url) & 0o077 == 0, "\(url.lastPathComponent)") }
      #expect(try mode(folder) == 0o700)
      try await server.stop()
    }
  }
}
#endif
