#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// A cloud whose database and large contents are backed up apart, one after the other.
@Suite(
  "Backups of a cloud in PostgreSQL", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct PostgreSQLBackupTests {
  /// Runs `body` with an empty database in this schema.
  private func with(_ body: (ContentLab, String) async throws -> Void) async throws {
    let name = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let settings = TestDatabase.settings(try TestDatabase.address(ofSchema: name))
    try await body(ContentLab(folder: TemporaryFolder(), settings: settings), name)
    for schema in [name, "\(name)_backup"] { try TestDatabase.drop(schema: schema) }
  }

  @Test("with the folder of contents copied after the database, only what was removed in between is asked for again")
  func contentsAfterwards() async throws {
    try await with { lab, schema in
      let manager = FileManager.default
      let place = lab.folder.url.appendingPathComponent("contents")
      let copy = lab.folder.url.appendingPathComponent("copy")
      try manager.createDirectory(at: place, withIntermediateDirectories: true)
      let places = ["folder:\(place.path)"]
      let bytes = (1...3 as ClosedRange<UInt64>).map { frameBytes(1_500_000, seed: $0) }
      let hashes = bytes.map { ContentHash(of: $0) }
      try await lab.with(places) { storage in
        for content in bytes.prefix(2) { _ = try await lab.put(content, to: storage) }
        try TestDatabase.backUp(schema: schema)
        // In between, one gets other bytes in place of its own, which go, and another one comes.
        let replaced = hashes[1]
        try await storage.decide(on: lab.container) { try $0.suspectContent(replaced) }
        _ = try await lab.put(bytes[1], to: storage)
        try await storage.sweep(now: 10)
        _ = try await lab.put(bytes[2], to: storage)
        try manager.copyItem(at: place, to: copy)
      }
      try TestDatabase.putBack(schema: schema)
      try manager.removeItem(at: place)
      try manager.moveItem(at: copy, to: place)
      try await lab.with(places) { storage async throws in
        #expect(try await lab.bytes(hashes[0], in: storage) == bytes[0])
        #expect(try await storage.hasContent(hashes[1], of: lab.container))
        #expect(try await lab.bytes(hashes[1], in: storage) == nil)
        // Now it is known that they are gone: whoever has them is asked.
        #expect(try await !storage.hasContent(hashes[1], of: lab.container))
        #expect(try await lab.bytes(hashes[2], in: storage) == nil)
        for (content, hash) in zip(bytes, hashes).dropFirst() {
          #expect(try await lab.put(content, to: storage) == hash)
          #expect(try await lab.bytes(hash, in: storage) == content)
        }
      }
    }
  }

  @Test("with the folder copied before the database, the bytes of what was saved in between are missing")
  func contentsBefore() async throws {
    try await with { lab, schema in
      let manager = FileManager.default
      let place = lab.folder.url.appendingPathComponent("contents")
      let copy = lab.folder.url.appendingPathComponent("copy")
      try manager.createDirectory(at: place, withIntermediateDirectories: true)
      let places = ["folder:\(place.path)"]
      let bytes = frameBytes(1_500_000, seed: 1)
      try await lab.with(places) { storage in
        try manager.copyItem(at: place, to: copy)
        _ = try await lab.put(bytes, to: storage)
        try TestDatabase.backUp(schema: schema)
      }
      try TestDatabase.putBack(schema: schema)
      try manager.removeItem(at: place)
      try manager.moveItem(at: copy, to: place)
      try await lab.with(places) { storage async throws in
        #expect(try await lab.bytes(ContentHash(of: bytes), in: storage) == nil)
      }
    }
  }
}
#endif
