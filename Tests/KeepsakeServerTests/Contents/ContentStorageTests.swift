#if Cloud && PostgreSQL
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// What every place of large contents does.
@Suite(
  "Places of large contents", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct ContentStorageTests {
  private static let edge = ContentParts.partBytes

  private func with(
    _ kind: TestContents, _ body: (any ContentStorage, ContentLab) async throws -> Void
  ) async throws {
    try await ContentLab.with { lab in
      try await lab.with([kind.place(in: lab.folder)]) { try await body($0.places.first, lab) }
    }
  }

  private func key(_ number: Int, of container: UInt64 = 1) throws -> ContentKey {
    let container = ContainerID(high: 7, low: container)
    return try ContentKey("\(container)-\(number)", of: container)
  }

  @Test("bytes are read as they were put, in ranges and at their borders", arguments: TestContents.all)
  func ranges(_ kind: TestContents) async throws {
    try await with(kind) { storage, lab in
      let (bytes, key) = (frameBytes(3 * Self.edge + 17, seed: 1), try key(1))
      try await storage.put(try lab.file(bytes), as: key)
      #expect(try await storage.size(of: key) == bytes.count)
      for range in [
        0..<1, Self.edge - 1..<Self.edge + 1, Self.edge..<2 * Self.edge, 5..<3 * Self.edge + 5,
        bytes.count - 1..<bytes.count, 0..<bytes.count, 4..<4,
      ] { #expect(try await storage.bytes(range, of: key) == bytes[range], "\(range)") }
      for range in [bytes.count - 1..<bytes.count + 1, bytes.count..<bytes.count + 1, 9 << 20..<(9 << 20) + 1] {
        let error = await #expect(throws: ContentStorageError.self) { try await storage.bytes(range, of: key) }
        #expect(error?.code == .damaged, "\(range)")
      }
    }
  }

  @Test("what isn't there is nothing, and is deleted as often as one likes", arguments: TestContents.all)
  func missing(_ kind: TestContents) async throws {
    try await with(kind) { storage, lab in
      let (one, other) = (try key(1), try key(1, of: 2))
      try await storage.put(try lab.file(Data("one".utf8)), as: one)
      try await storage.put(try lab.file(Data("other".utf8)), as: other)
      for _ in 1...2 {
        try await storage.delete(one)
        #expect(try await storage.size(of: one) == nil)
        #expect(try await storage.bytes(0..<1, of: one) == nil)
      }
      #expect(try await storage.bytes(0..<5, of: other) == Data("other".utf8))
    }
  }

  @Test("what is put again is refused or stays as it is, and a file stays", arguments: TestContents.all)
  func again(_ kind: TestContents) async throws {
    try await with(kind) { storage, lab in
      let (bytes, key) = (frameBytes(Self.edge + 1, seed: 1), try key(1))
      let file = try lab.file(bytes)
      try await storage.put(file, as: key)
      do { try await storage.put(file, as: key) } catch { #expect(kind == .rows) }
      #expect(try await storage.size(of: key) == bytes.count)
      #expect(try await storage.bytes(0..<bytes.count, of: key) == bytes)
      #expect(try Data(contentsOf: file) == bytes)
    }
  }

  @Test("no content is empty", arguments: TestContents.all)
  func empty(_ kind: TestContents) async throws {
    try await with(kind) { storage, lab in
      let (file, key) = (try lab.file(Data()), try key(1))
      let error = await #expect(throws: ContentStorageError.self) { try await storage.put(file, as: key) }
      #expect(error?.code == .badName)
      #expect(try await storage.size(of: key) == nil)
    }
  }

  @Test("a list has all, a page at a time, in their order, with when each was stored", arguments: TestContents.all)
  func pages(_ kind: TestContents) async throws {
    try await with(kind) { storage, lab in
      let keys = try (0..<23).map { try key($0) }
      let before = Int64(Date().timeIntervalSince1970) * 1000 - 5_000
      for key in keys { try await storage.put(try lab.file(Data("x".utf8)), as: key) }
      for limit in [1, 7, 22, 23, 24] {
        var (found, place): ([ContentPage.Entry], String?) = ([], nil)
        repeat {
          let page = try await storage.list("", after: place, limit: limit)
          #expect(page.entries.count <= limit)
          found += page.entries
          place = page.next
        } while place != nil
        #expect(found.map(\.key.text) == keys.map(\.text).sorted(), "pages of \(limit)")
        if kind != .rows { #expect(found.allSatisfy { $0.storedMilliseconds > before }) }
      }
      let one = try #require(keys.first)
      for prefix in [String(one.text.prefix(2)), String(one.text.prefix(4)), one.text] {
        let expected = keys.map(\.text).filter { $0.hasPrefix(prefix) }.sorted()
        #expect(try await storage.list(prefix, after: nil, limit: 100).entries.map(\.key.text) == expected)
      }
      #expect(try await storage.list("zz", after: nil, limit: 100).entries.isEmpty)
    }
  }

  @Test(
    "a bucket refuses who has the wrong key",
    .enabled(if: TestContents.address != nil, "no object storage: KEEPSAKE_S3 isn't set"))
  func wrongKey() async throws {
    let address = try S3Address(#require(TestContents.address))
    let own = try S3Credentials(environment: ProcessInfo.processInfo.environment)
    let wrong = try S3Credentials(
      accessKey: own.accessKey, secretKey: String(own.secretKey.reversed()) + "x", sessionToken: nil, from: "a test")
    for (credentials, isRight) in [(own, true), (wrong, false)] {
      let bucket = ContentBucket(address) { credentials }
      do {
        #expect(try await bucket.size(of: key(1)) == nil)
        #expect(isRight)
      } catch let error as ContentStorageError {
        #expect(!isRight && error.code == .refused && error.message.contains("SignatureDoesNotMatch"))
      }
      try await bucket.shutDown()
    }
  }

  @Test(
    "names that nobody here makes aren't keys",
    arguments: [
      "", ".", "..", "../../etc/passwd", "/etc/passwd", "a/b", "a\0b", "A", "ä", "a b", "a%2Fb", "a\nb", "x&prefix=",
      String(repeating: "a", count: 400),
    ])
  func hostile(_ name: String) throws {
    let container = ContainerID(high: 1, low: 1)
    for name in [name, "\(container)-\(name)/", "\(container)-\(name).", "\(ContainerID(high: 1, low: 2))-1"] {
      let error = #expect(throws: ContentStorageError.self) { try ContentKey(name, of: container) }
      #expect(error?.code == .badName)
    }
    #expect(ContentKey(text: name) == nil)
    #expect(ContentKey(text: "ab/cd/\(name)") == nil)
    #expect(ContentKey(text: "ab/cd/\(container)-1") == nil, "it is in another folder")
  }

  @Test("a key's text is read again, and the keys of many contents are in many folders")
  func texts() throws {
    var folders: Set<String> = []
    for number in 0..<2_000 {
      let key = try key(number)
      #expect(ContentKey(text: key.text) == key)
      folders.insert(String(key.text.prefix(5)))
    }
    #expect(folders.count > 1_900)
  }
}
#endif
