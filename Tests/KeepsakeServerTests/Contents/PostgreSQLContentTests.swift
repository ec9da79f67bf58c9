#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// Large contents of a cloud in PostgreSQL, in each place where they may be.
@Suite(
  "Large contents of a cloud in PostgreSQL", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct PostgreSQLContentTests {
  private static let day = ContentLab.day
  private static let large = 1_500_000
  /// Those beside the database.
  private static let beside = TestContents.all.filter { $0 != .rows }

  /// Runs `body` with two servers whose contents are in one place.
  private func with(
    _ kind: TestContents, _ body: (PostgreSQLStorage, PostgreSQLStorage, ContentLab) async throws -> Void
  ) async throws {
    try await ContentLab.with { lab in
      let places = [try kind.place(in: lab.folder)]
      try await lab.with(places) { one in try await lab.with(places) { try await body(one, $0, lab) } }
    }
  }

  private func late(_ name: String, _ count: Int) -> WriteSet.Content {
    WriteSet.Content(
      hash: ContentHash(of: Data(name.utf8)), length: 1, base: nil, bytes: .stored(name: name, count: count))
  }

  @Test("a large content is read at the other server, whole and in ranges", arguments: TestContents.all)
  func ranges(_ kind: TestContents) async throws {
    try await with(kind) { one, other, lab in
      let edge = ContentParts.partBytes
      let content = frameBytes(5 * edge + 17, seed: 1)
      let hash = try await lab.put(content, to: one)
      #expect(try await lab.bytes(hash, in: other) == content)
      for range in [0..<1, edge - 1..<edge + 1, edge..<2 * edge, content.count - 1..<content.count] {
        #expect(try await lab.bytes(hash, in: other, range) == content[range])
      }
      #expect(try await one.kept(by: lab) == Set(lab.objects().keys))
      #expect(try lab.objects().values.map(\.self) == [.max])
    }
  }

  @Test("a content that is put in place of a damaged one is read, and the old bytes go", arguments: TestContents.all)
  func replaced(_ kind: TestContents) async throws {
    try await with(kind) { one, other, lab in
      let content = frameBytes(Self.large, seed: 1)
      let hash = try await lab.put(content, to: one)
      let old = try await one.kept(by: lab)
      try await one.decide(on: lab.container) { try $0.suspectContent(hash) }
      #expect(try await lab.put(content, to: other) == hash)
      try await one.sweep(now: 10)
      let new = try await one.kept(by: lab)
      #expect(new.count == 1 && new != old)
      #expect(try lab.objects().keys.map(\.self) == Array(new))
      #expect(try await lab.bytes(hash, in: one) == content)
    }
  }

  @Test("the bytes of a content that makes room go", arguments: TestContents.all)
  func pruned(_ kind: TestContents) async throws {
    try await ContentLab.with { lab in
      let places = [try kind.place(in: lab.folder)]
      try await lab.with(places) { _ = try await lab.put(frameBytes(Self.large, seed: 1), to: $0) }
      try await lab.with(places, now: 100 * Self.day) { storage in
        let quota = Int64(Self.large)
        let other = ContentHash(of: Data([1]))
        #expect(try await storage.shortage(for: other, of: Self.large, in: lab.container, quota: quota) == nil)
        #expect(try await storage.kept(by: lab).count == 1, "what is read now is read on for a moment")
        try await storage.sweep(now: 100 * Self.day)
        #expect(try await storage.kept(by: lab).isEmpty && lab.objects().isEmpty)
      }
    }
  }

  @Test("a deleted player's large contents are gone at once", arguments: TestContents.all)
  func deleted(_ kind: TestContents) async throws {
    try await with(kind) { one, other, lab in
      for seed in 1...3 as ClosedRange<UInt64> { _ = try await lab.put(frameBytes(Self.large, seed: seed), to: one) }
      #expect(try await other.delete(lab.container, now: 5).areFilesGone)
      #expect(try await one.kept(by: lab).isEmpty && lab.objects().isEmpty)
    }
  }

  @Test("bytes that no row names are swept after a day, and those of contents never", arguments: TestContents.all)
  func swept(_ kind: TestContents) async throws {
    try await with(kind) { one, other, lab in
      let content = frameBytes(Self.large, seed: 1)
      let hash = try await lab.put(content, to: one)
      let name = "\(lab.container)-lost"
      try await one.adopt(try lab.file(content), as: name, of: lab.container)
      try await other.sweep(now: Self.day)
      #expect(try await one.kept(by: lab).contains(name))
      try await other.sweep(now: Self.day + 10)
      #expect(try await one.kept(by: lab).count == 1 && lab.objects().count == 1)
      #expect(try await lab.bytes(hash, in: one) == content)
      // What is committed after its bytes were swept is refused, and may be sent again.
      let content2 = late(name, content.count)
      let error = await #expect(throws: APIError.self) {
        try await one.decide(on: lab.container) { _ = try $0.keep(content2) }
      }
      #expect(error?.code == .busy)
      #expect(try await !one.hasContent(content2.hash, of: lab.container))
    }
  }

  @Test("a commit and a sweep that meet leave a content with its bytes, or neither", arguments: TestContents.all)
  func racing(_ kind: TestContents) async throws {
    try await with(kind) { one, other, lab in
      var kept = 0
      for round in 0..<40 {
        let name = "\(lab.container)-race-\(round)"
        let content = frameBytes(ContentParts.partBytes + round, seed: UInt64(round))
        try await one.adopt(try lab.file(content), as: name, of: lab.container)
        let content2 = late(name, content.count)
        async let committed = commit(content2, to: one, lab, after: round)
        async let swept: Void = other.sweep(now: Self.day + 10)
        let isCommitted = try await committed
        try await swept
        try await one.sweep(now: Self.day + 10)
        #expect(try await one.hasContent(content2.hash, of: lab.container) == isCommitted)
        #expect(try await lab.bytes(content2.hash, in: other) == (isCommitted ? content : nil), "round \(round)")
        #expect(try await one.kept(by: lab).contains(name) == isCommitted)
        kept += isCommitted ? 1 : 0
      }
      #expect(try lab.objects().count == kept)
    }
  }

  private func commit(
    _ content: WriteSet.Content, to storage: PostgreSQLStorage, _ lab: ContentLab, after round: Int
  ) async throws -> Bool {
    // So that each of them is the first one now and then.
    try await Task.sleep(for: .microseconds(round * 100))
    do {
      return try await storage.decide(on: lab.container) { try $0.keep(content) }
    } catch let error as APIError where error.code == .busy {
      return false
    }
  }

  @Test("nothing is left of what a player sends while everything of the player is deleted", arguments: TestContents.all)
  func deletedMeanwhile(_ kind: TestContents) async throws {
    try await with(kind) { one, other, lab in
      for round in 0..<10 as Range<UInt64> {
        let content = frameBytes(Self.large, seed: round)
        async let put: Void = send(content, to: one, lab)
        try await Task.sleep(for: .milliseconds(round * 2))
        _ = try await other.delete(lab.container, now: 5)
        try await put
        try await other.sweep(now: Self.day + 10)
        #expect(try await one.kept(by: lab).isEmpty && lab.objects().isEmpty, "round \(round)")
        try lab.run("DELETE FROM retired")
      }
    }
  }

  private func send(_ content: Data, to storage: PostgreSQLStorage, _ lab: ContentLab) async throws {
    do {
      _ = try await lab.put(content, to: storage)
    } catch let error as APIError {
      #expect([.retired, .busy].contains(error.code))
    } catch let error as PostgreSQLError {
      #expect(error.isPassing)
    }
  }

  @Test("a content that was committed keeps its bytes, although its server gives them up", arguments: TestContents.all)
  func givenUp(_ kind: TestContents) async throws {
    try await with(kind) { one, _, lab in
      let content = frameBytes(Self.large, seed: 1)
      let hash = try await lab.put(content, to: one)
      for name in try lab.objects().keys { try await one.discard(name, of: lab.container) }
      try await one.sweep(now: Self.day)
      #expect(try await lab.bytes(hash, in: one) == content)
      let name = "\(lab.container)-lost"
      try await one.adopt(try lab.file(content), as: name, of: lab.container)
      try await one.discard(name, of: lab.container)
      // It may be gone at any moment from now on.
      let content2 = late(name, content.count)
      let error = await #expect(throws: APIError.self) {
        try await one.decide(on: lab.container) { _ = try $0.keep(content2) }
      }
      #expect(error?.code == .busy)
      try await one.sweep(now: 10)
      #expect(try await one.kept(by: lab).count == 1)
    }
  }

  // MARK: Beside the database

  @Test("a content whose bytes are gone or cut isn't here, and is taken again", arguments: beside)
  func lost(_ kind: TestContents) async throws {
    try await with(kind) { one, other, lab in
      let content = frameBytes(Self.large, seed: 1)
      for isCut in [false, true] {
        let hash = try await lab.put(content, to: one)
        let name = try #require(try lab.objects().first { $0.value == .max }).key
        let key = try ContentKey(name, of: lab.container)
        try await one.places.first.delete(key)
        if isCut { try await one.places.first.put(try lab.file(content.prefix(5)), as: key) }
        let revision = try await one.load(ReadSet(), of: lab.container).revision
        #expect(try await lab.bytes(hash, in: other) == nil)
        // So that no server goes on with what it remembers of the container.
        #expect(try await one.load(ReadSet(), of: lab.container).revision > revision)
        #expect(try await !other.hasContent(hash, of: lab.container))
        #expect(try await lab.put(content, to: other) == hash)
        #expect(try await lab.bytes(hash, in: one) == content)
        try await one.sweep(now: 10)
        #expect(try await one.kept(by: lab).count == 1)
      }
    }
  }

  @Test(
    "contents stay readable where they are when others are put elsewhere, and their place has to be named",
    arguments: beside)
  func moving(_ kind: TestContents) async throws {
    try await ContentLab.with { lab in
      let place = try kind.place(in: lab.folder)
      let contents = (1...3 as ClosedRange<UInt64>).map { frameBytes(Self.large, seed: $0) }
      var hashes: [ContentHash] = []
      for (content, places) in zip(contents, [[], [place], ["rows", place]]) {
        try await lab.with(places) { storage in
          hashes.append(try await lab.put(content, to: storage))
          for (hash, content) in zip(hashes, contents) { #expect(try await lab.bytes(hash, in: storage) == content) }
        }
      }
      let error = await #expect(throws: ServerError.self) { try await lab.with(["rows"]) { _ in } }
      #expect(error?.code == .configuration && error?.message.contains("--contents") == true)
      // Once nothing is there any more, nobody has to name it.
      try await lab.with([place]) { _ = try await $0.delete(lab.container, now: 5) }
      try await lab.with(["rows"]) { storage in
        let kept = try await storage.kept(by: lab)
        #expect(kept.isEmpty)
      }
    }
  }

  @Test("another cloud's place is refused", arguments: beside)
  func others(_ kind: TestContents) async throws {
    try await ContentLab.with { lab in
      let place = try kind.place(in: lab.folder)
      try await lab.with([place]) { _ = try await lab.put(frameBytes(Self.large, seed: 1), to: $0) }
      try await lab.with([place]) { storage in
        let kept = try await storage.kept(by: lab)
        #expect(kept.count == 1)
      }
      try await ContentLab.with { other in
        let error = await #expect(throws: ServerError.self) { try await other.with([place]) { _ in } }
        #expect(error?.code == .configuration)
      }
    }
  }

  @Test("bytes of which the database knows nothing are removed once they are old, and no others", arguments: beside)
  func unknown(_ kind: TestContents) async throws {
    try await with(kind) { one, _, lab in
      let content = frameBytes(Self.large, seed: 1)
      let hash = try await lab.put(content, to: one)
      let storage = try one.places.first
      try await storage.put(try lab.file(content), as: ContentKey("\(lab.container)-unknown", of: lab.container))
      let now = Int64(Date().timeIntervalSince1970) * 1000
      try await one.removeUnknown(now: now + 29 * Self.day)
      #expect(try await one.kept(by: lab).count == 2)
      try await one.removeUnknown(now: now + 31 * Self.day)
      #expect(try await one.kept(by: lab).count == 1)
      #expect(try await lab.bytes(hash, in: one) == content)
    }
  }

  @Test("in a folder that isn't mounted nothing is gone, and nothing is put")
  func unmounted() async throws {
    try await with(.folder) { one, other, lab in
      let content = frameBytes(Self.large, seed: 1)
      let hash = try await lab.put(content, to: one)
      let folder = try #require(one.places.first as? ContentFolder).folder
      let away = lab.folder.url.appendingPathComponent("away")
      try FileManager.default.moveItem(at: folder, to: away)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
      let read = await #expect(throws: ContentStorageError.self) { try await lab.bytes(hash, in: other) }
      #expect(read?.code == .notThere && read?.isPassing == true)
      let put = await #expect(throws: ContentStorageError.self) {
        try await lab.put(frameBytes(Self.large, seed: 2), to: one)
      }
      #expect(put?.code == .notThere)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
      await #expect(throws: ContentStorageError.self) { try await one.removeUnknown(now: .max) }
      // A server that starts now doesn't take it for a new one, and a mark that one has left there isn't this one's.
      await #expect {
        try await lab.with(["folder:\(folder.path)"]) { _ in }
      } throws: {
        ($0 as? ServerError)?.code == .configuration
      }
      let mark = try String(contentsOf: away.appendingPathComponent("keepsake-cloud"), encoding: .utf8)
      let cloud = try #require(mark.split(separator: " ").first)
      try "\(cloud) 0123456789abcdef0123456789abcdef\n".write(
        to: folder.appendingPathComponent("keepsake-cloud"), atomically: true, encoding: .utf8)
      for _ in 1...2 {
        let late = await #expect(throws: ContentStorageError.self) { try await lab.bytes(hash, in: other) }
        #expect(late?.code == .notThere)
      }
      try FileManager.default.removeItem(at: folder)
      try FileManager.default.moveItem(at: away, to: folder)
      #expect(try await lab.bytes(hash, in: other) == content)
      // What wasn't put is forgotten like what nobody named.
      try await one.sweep(now: Self.day + 10)
      #expect(try lab.objects().count == 1)
    }
  }

  @Test("what was left of a file that wasn't written to its end is removed after a day")
  func unfinished() async throws {
    try await with(.folder) { one, _, lab in
      let content = frameBytes(Self.large, seed: 1)
      let hash = try await lab.put(content, to: one)
      let folder = try #require(one.places.first as? ContentFolder).folder
      let beside = folder.appendingPathComponent("incoming/rest")
      try content.write(to: beside)
      let now = Int64(Date().timeIntervalSince1970) * 1000
      try await one.sweep(now: now)
      #expect(FileManager.default.fileExists(atPath: beside.path))
      try await one.sweep(now: now + 2 * Self.day)
      #expect(!FileManager.default.fileExists(atPath: beside.path))
      #expect(try await lab.bytes(hash, in: one) == content)
    }
  }
}

extension PostgreSQLStorage {
  fileprivate func kept(by lab: ContentLab) async throws -> Set<String> { try await lab.kept(by: self) }
}
#endif
