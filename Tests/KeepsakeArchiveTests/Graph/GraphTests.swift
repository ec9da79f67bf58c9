import Foundation
import KeepsakeInspection
import TestSupport
import Testing

@testable import ArchiveWorlds
@testable import KeepsakeArchive

/// Has references of every kind, for a graph in which every object leads to every other.
@Archivable private final class Knot {
  let number: Int
  var next: Knot?
  var near: [Knot] = []
  var named: [String: Knot] = [:]
  weak var back: Knot?
  init(_ number: Int) { self.number = number }
}

@Archivable private struct Lists {
  var all: [Node] = []
  var same: [Node] = []
  var again: [[Node]] = []
  var byName: [String: [Node]] = [:]
}

/// `Chained` and `Failing` are separate classes, so that the run of the chain precedes the object that fails.
///
/// `Chained` has two references to its own type: the compiler turns the release of a list with only one into a loop.
@Archivable(name: "Chained") private final class Chained {
  var next: Chained?
  var other: Chained?
}
@Archivable(name: "Failing") private final class Failing {
  var chain: [Chained] = []
  func didDecode(context: Any?) throws {
    if let error = context as? ArchiveError { throw error }
  }
}
@Archivable(name: "Remembering") private struct Forgetful { var kept = 1 }
@Archivable(name: "Pair") private struct Second { var second = 0 }
@Archivable private struct Remembering { var kept = 5, list: Chained?, lets: LetNode? }

@Suite struct GraphTests {
  /// Swift releases the objects of a chain recursively, which could overflow the stack, so the chain is unlinked first.
  private func unlink(_ head: Node?) {
    var head = head
    while let node = head {
      head = node.next
      node.next = nil
    }
  }

  private func chain(_ count: Int) -> (first: Node, last: Node) {
    let last = Node(count - 1)
    var first = last
    for value in stride(from: count - 2, through: 0, by: -1) {
      let node = Node(value)
      node.next = first
      first = node
    }
    return (first, last)
  }

  @Test func aListOfVeryManyNodesComesBack() throws {
    let count = TestDepth.listedObjects
    let (first, _) = chain(count)
    let bytes = try Archive.encode(first)
    let copy = try Archive.decode(Node.self, from: bytes)
    var node: Node? = copy
    var position = 0
    while let current = node, current.value == position {
      position += 1
      node = current.next
    }
    #expect(position == count)
    #expect(try Archive.encode(copy) == bytes)
    #expect(try ArchiveInspection(of: bytes).objects.count == count)
    unlink(first)
    unlink(copy)
  }

  /// The root's array begins with the list's last node, so that each node refers to one with a lower number.
  @Test func aListThatPointsBackwardComesBack() throws {
    let count = 300_000
    var nodes = (0..<count).map { Node($0) }
    for index in 1..<count { nodes[index].next = nodes[index - 1] }
    var copy = try Archive.decode([Node].self, from: Archive.encode(nodes))
    #expect(
      copy.count == count && copy[0].next == nil && copy[count - 1].next === copy[count - 2] && copy[1].next === copy[0]
    )
    #expect(copy.indices.allSatisfy { copy[$0].value == $0 })
    for node in nodes + copy { node.next = nil }
    nodes = []
    copy = []
  }

  /// Constant references can't be unlinked, so the array that holds every node is emptied from the list's head.
  @Test func aListOfConstantsComesBack() throws {
    let count = 200_000
    var nodes: [LetNode] = []
    for value in 0..<count { nodes.append(LetNode(value, nodes.last)) }
    let bytes = try Archive.encode(nodes[count - 1])
    // Each node must be released before the one that it refers to, the head first, so nothing else may hold the head.
    var copies = [try Archive.decode(LetNode.self, from: bytes)]
    while let next = copies.last?.next { copies.append(next) }
    #expect(copies.count == count && copies.indices.allSatisfy { copies[$0].value == count - 1 - $0 })
    #expect(try ArchiveInspection(of: bytes).objects.count == count)
    while !nodes.isEmpty { nodes.removeLast() }
    copies.reverse()
    while !copies.isEmpty { copies.removeLast() }
  }

  @Test func aHundredThousandObjectsThatAllReferToEachOtherComeBack() throws {
    let count = 100_000
    var random = Seeded(11)
    let knots = (0..<count).map { Knot($0) }
    for knot in knots {
      knot.next = knots[(knot.number + 1) % count]
      knot.near = (0..<3).map { _ in knots[.random(in: 0..<count, using: &random)] }
      if knot.number % 10 == 0 { knot.named = ["a": knots[.random(in: 0..<count, using: &random)], "me": knot] }
      knot.back = knots[(knot.number + count - 1) % count]
    }
    let bytes = try Archive.encode(knots[0])
    let copy = try Archive.decode(Knot.self, from: bytes)
    var copies: [Knot] = []
    var next = copy
    for _ in 0..<count {
      copies.append(next)
      guard let following = next.next else { break }
      next = following
    }
    #expect(copies.count == count && next === copy)
    var wrong = 0
    for (old, new) in zip(knots, copies) {
      let isSame =
        old.number == new.number && old.near.map(\.number) == new.near.map(\.number)
        && new.back === copies[(new.number + count - 1) % count]
        && zip(old.near, new.near).allSatisfy { copies[$0.number] === $1 }
        && old.named.mapValues(\.number) == new.named.mapValues(\.number)
      if !isSame { wrong += 1 }
    }
    #expect(wrong == 0, "seed 11")
    #expect(try Archive.encode(copy) == bytes)
    let inspection = try ArchiveInspection(of: bytes)
    #expect(inspection.objects.count == count)
    for knot in knots + copies { (knot.next, knot.near, knot.named) = (nil, [], [:]) }
  }

  @Test func arraysOfTheSameObjectsKeepSharingThem() throws {
    let nodes = (0..<100).map { Node($0) }
    let lists = Lists(
      all: nodes, same: nodes.reversed(), again: [nodes, [nodes[3], nodes[3]]], byName: ["x": [nodes[3]], "y": nodes])
    let copy = try Archive.decode(Lists.self, from: Archive.encode(lists))
    #expect(copy.all.map(\.value) == Array(0..<100))
    #expect(
      zip(copy.all, copy.same.reversed()).allSatisfy { $0 === $1 }
        && zip(copy.all, copy.again[0]).allSatisfy { $0 === $1 })
    #expect(
      copy.again[1].allSatisfy { $0 === copy.all[3] } && copy.byName["x"]?[0] === copy.all[3]
        && copy.byName["y"]?[99] === copy.all[99])
  }

  // MARK: Releasing objects

  // Without the reader's order of releasing objects, each of these tests overflows a small stack. A game may load on a
  // secondary thread, whose stack has 512 KiB on some platforms.

  /// Encodes a list together with an object that refers to each of its nodes, and comes after them.
  private func failing(_ nodes: [Chained]) throws -> Data {
    let failing = Failing()
    failing.chain = nodes
    let bytes = try Archive.encode(failing)
    for node in nodes { node.next = nil }
    return bytes
  }

  @Test(arguments: [true, false]) func anErrorBehindALongListDoesNotOverflowTheStack(isBackward: Bool) throws {
    let nodes = (0..<100_000).map { _ in Chained() }
    for index in 1..<nodes.count {
      if isBackward { nodes[index].next = nodes[index - 1] } else { nodes[index - 1].next = nodes[index] }
    }
    let bytes = try failing(nodes)
    let refusal = ArchiveError(.unsupported, "the game refuses")
    #expect(errorOnSmallStack { _ = try Archive.decode(Failing.self, from: bytes, context: refusal) } == refusal)
    // An altered archive: the list is built and linked, and then an invalid byte follows.
    var bad = bytes
    let section = try bytes.withUnsafeBytes { try ArchiveFile($0, limits: .standard).referenceSection }
    // The last reference is nil; it is replaced by a number for which the section has no bytes.
    bad[section.upperBound - 1] = 0
    let sealed = Archive.resealed(bad)
    #expect(errorOnSmallStack { _ = try Archive.decode(Failing.self, from: sealed) }?.code == .damaged)
  }

  @Test func aListInNoParticularOrderDoesNotOverflowTheStackEither() throws {
    var random = Seeded(5)
    let nodes = (0..<100_000).map { _ in Chained() }
    let order = nodes.shuffled(using: &random)
    for index in 1..<order.count { order[index].next = order[index - 1] }
    let bytes = try failing(nodes)
    let refusal = ArchiveError(.unsupported, "the game refuses")
    #expect(errorOnSmallStack { _ = try Archive.decode(Failing.self, from: bytes, context: refusal) } == refusal)
  }

  @Test func aLongListInAFieldThatWasRemovedDoesNotOverflowTheStack() throws {
    var nodes = (0..<100_000).map { _ in Chained() }
    for index in 1..<nodes.count { nodes[index - 1].next = nodes[index] }
    var lets: [LetNode] = []
    for value in 0..<100_000 { lets.append(LetNode(value, lets.last)) }
    let forward = try Archive.encode(Remembering(list: nodes[0], lets: lets.last))
    for node in nodes { node.next = nil }
    for index in 1..<nodes.count { nodes[index].next = nodes[index - 1] }
    let backward = try Archive.encode(Pair<[Chained], Int>(first: nodes, second: 5))
    for node in nodes { node.next = nil }
    nodes = []
    while !lets.isEmpty { lets.removeLast() }
    let error = errorOnSmallStack {
      let forgetful = try Archive.decode(Forgetful.self, from: forward, classes: [Chained.self, LetNode.self])
      let second = try Archive.decode(Second.self, from: backward, classes: [Chained.self])
      guard forgetful.kept == 5, second.second == 5 else { throw ArchiveError(.unsupported, "other values came back") }
    }
    #expect(error == nil)
  }

  private func errorOnSmallStack(_ body: @escaping @Sendable () throws -> Void) -> ArchiveError? {
    onSmallStack {
      do { try body() } catch { return error as? ArchiveError ?? ArchiveError(.unsupported, "\(error)") }
      return nil
    }
  }

  // MARK: Stable bytes

  /// Encodes one random world for each seed: encoding the decoded world again gives the same bytes.
  @Test func randomWorldsComeBackToTheSameBytes() throws {
    for seed in 0..<60 as Range<UInt64> {
      let world = RandomWorld.make(seed: seed)
      let bytes = try Archive.encode(world)
      let copy = try Archive.decode(RandomWorld.self, from: bytes)
      #expect(try Archive.encode(copy) == bytes, "seed \(seed)")
      #expect(copy.texts == world.texts && copy.creatures.map(\.name) == world.creatures.map(\.name), "seed \(seed)")
      world.unlink()
      copy.unlink()
    }
  }
}
