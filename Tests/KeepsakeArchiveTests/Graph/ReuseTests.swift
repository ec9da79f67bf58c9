import Foundation
import Testing

@testable import ArchiveWorlds
@testable import KeepsakeArchive

@Archivable private final class Leaf {
  var name: String
  var next: Leaf?
  init(_ name: String) { self.name = name }
}

/// Decodes another archive of its own type while it is decoded.
@Archivable private final class Nesting {
  var inner = Data()
  var level: Int
  @Unsaved var found: Nesting?

  init(level: Int) { self.level = level }

  func didDecode(context: Any?) throws {
    if !inner.isEmpty { found = try Archive.decode(Nesting.self, from: inner, context: context) }
  }
}

@Archivable private struct Listed {
  var leaves: [Leaf]
}

/// What a writer or reader keeps for reuse must not affect the next archive.
struct ReuseTests {
  private func chain(_ count: Int, _ name: String = "leaf") -> Leaf {
    let first = Leaf(name)
    var last = first
    for index in 1..<max(count, 1) {
      last.next = Leaf("\(name) \(index)")
      last = last.next ?? last
    }
    return first
  }

  @Test(arguments: [1, 2, 64, 65, 200]) func objectsAreLetGoAfterEncodingAndDecoding(count: Int) throws {
    weak var original: Leaf?
    weak var copy: Leaf?
    do {
      let chain = chain(count)
      original = chain
      let decoded = try Archive.decode(Leaf.self, from: Archive.encode(chain))
      copy = decoded
      #expect(decoded.name == "leaf" && (decoded.next == nil) == (count == 1))
    }
    #expect(original == nil && copy == nil)
  }

  @Test(
    "a small archive after a large one of the same type has the expected bytes, and later archives don't change them")
  func smallAfterLarge() throws {
    let expected = try Archive.encode(Listed(leaves: [Leaf("small")]))
    // More memory than is kept for reuse, so that the writer frees it.
    _ = try Archive.encode(Listed(leaves: (0..<5_000).map { Leaf("a leaf with a longer name, number \($0)") }))
    var small: [Data] = []
    for _ in 0..<4 { small.append(try Archive.encode(Listed(leaves: [Leaf("small")]))) }
    _ = try Archive.encode(Listed(leaves: [Leaf("another")]))
    for bytes in small {
      let isSame = bytes == expected
      #expect(isSame)
      #expect(try Archive.decode(Listed.self, from: bytes).leaves.map(\.name) == ["small"])
    }
  }

  @Test(arguments: [3, 100]) func anErrorLeavesNothingBehind(count: Int) throws {
    let bytes = try Archive.encode(Listed(leaves: (0..<count).map { Leaf("\($0)") }))
    var errors = 0
    for cut in stride(from: 17, to: bytes.count - 16, by: 5) {
      var damaged = bytes
      damaged[cut] ^= 0xFF
      damaged = Archive.resealed(damaged)
      do { _ = try Archive.decode(Listed.self, from: damaged) } catch is ArchiveError { errors += 1 }
      #expect(try Archive.decode(Listed.self, from: bytes).leaves.map(\.name) == (0..<count).map { "\($0)" })
    }
    #expect(errors > 5)
  }

  @Test func theContextIsNotKept() throws {
    weak var context: Leaf?
    let bytes = try Archive.encode(Nesting(level: 1))
    do {
      let held = Leaf("context")
      context = held
      _ = try Archive.decode(Nesting.self, from: bytes, context: held)
    }
    #expect(context == nil)
  }

  @Test func archivesAreDecodedInsideOfHooks() throws {
    var bytes = Data()
    for level in 0..<5 {
      let outer = Nesting(level: level)
      outer.inner = bytes
      bytes = try Archive.encode(outer)
    }
    var found: Nesting? = try Archive.decode(Nesting.self, from: bytes)
    for level in (0..<5).reversed() {
      #expect(found?.level == level)
      found = found?.found
    }
    #expect(found == nil)
  }

  @Test func largeAndSmallArchivesTakeTurns() throws {
    let (large, small) = (chain(20_000), chain(3))
    let expected = (try Archive.encode(large), try Archive.encode(small))
    for _ in 0..<3 {
      #expect(try Archive.encode(large) == expected.0)
      #expect(try Archive.encode(small) == expected.1)
    }
    let decoded = try Archive.decode(Leaf.self, from: expected.0)
    #expect(try Archive.encode(decoded) == expected.0)
    for first in [large, decoded] {
      var leaf: Leaf? = first
      while let current = leaf {
        leaf = current.next
        current.next = nil
      }
    }
  }

  @Test func threadsDoNotShareWhatIsReused() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<4 {
        group.addTask {
          for round in 0..<300 {
            let count = 1 + (round * 7 + task) % 90
            let names = (0..<count).map { "\(task) \(round) \($0)" }
            let bytes = try Archive.encode(Listed(leaves: names.map { Leaf($0) }))
            #expect(try Archive.decode(Listed.self, from: bytes).leaves.map(\.name) == names)
          }
        }
      }
      try await group.waitForAll()
    }
  }
}
