import Foundation
import TestSupport
import Testing

@testable import KeepsakeInterchange

/// Objects with many references to them.
@Suite(.hangLimit) struct KeyedSharingTests {
  private struct Node: Codable { var children: [Node] }

  /// The classes come first: 1 is Node, 2 is NSArray; then each node and its list.
  private func archive(_ lists: [[UInt64]]) throws -> KeyedArchive {
    var objects: [PropertyList] = [KeyedArchiveTests.name("Node"), KeyedArchiveTests.name("NSArray")]
    for (index, children) in lists.enumerated() {
      objects.append(["children": .uid(UInt64(2 * index + 4)), "$class": .uid(1)])
      objects.append(["NS.objects": .array(children.map { .uid(2 * $0 + 3) }), "$class": .uid(2)])
    }
    return try KeyedArchive(KeyedArchiveTests.archive(objects, top: ["root": .uid(3)]))
  }

  private func size(_ node: Node) -> Int { node.children.reduce(1) { $0 + size($1) } }

  @Test("objects that each refer to the next one twice exceed a limit when decoded, but not as a tree")
  func doubling() throws {
    let archive = try archive((0..<40).map { $0 == 39 ? [] : [$0 + 1, $0 + 1] })
    #expect { try archive.decode(Node.self, classes: ["Node": Node.self]) } throws: {
      ($0 as? PropertyListError)?.code == .limit
    }
    // A tree has each object once.
    #expect(try archive.tree().objects.count >= 40)
  }

  @Test("an object that a list refers to many times is decoded for each of the references")
  func shared() throws {
    let archive = try archive([Array(repeating: 1, count: 20_000), []])
    #expect(size(try archive.decode(Node.self, classes: ["Node": Node.self])) == 20_001)
  }

  /// An index set with `ranges` ranges, and a list that refers to it `times` times.
  private func indexes(_ ranges: Int, named times: Int) throws -> KeyedArchive {
    let data = Data((0..<2 * ranges).map { _ in 1 })
    return try KeyedArchive(
      KeyedArchiveTests.archive(
        [
          KeyedArchiveTests.name("NSIndexSet"), KeyedArchiveTests.name("NSArray"),
          ["NSRangeCount": .integer(Int128(ranges)), "NSRangeData": .data(data), "$class": .uid(1)],
          ["NS.objects": .array(Array(repeating: .uid(3), count: times)), "$class": .uid(2)],
        ], top: ["root": .uid(4)]))
  }

  @Test("a long value with many references is one object in a tree, and counts each time it is decoded")
  func longNamedOften() throws {
    let archive = try indexes(20_000, named: 20_000)
    let objects = try archive.tree().objects.count
    #expect(objects == 1, "the list is the top-level value, and the index set is one object")
    #expect { try archive.decode([[Range<Int>]].self) } throws: { ($0 as? PropertyListError)?.code == .limit }
    #expect(try indexes(3, named: 2).decode([[Range<Int>]].self).map(\.count) == [3, 3])
  }

  @Test(
    "a class record with too many entries is refused, because each object would have a copy of it",
    arguments: ["hints", "junk"])
  func longClasses(what: String) throws {
    let long = PropertyList.array(Array(repeating: .string("B"), count: 100))
    var record: [PropertyList.Entry] = [.init("$classname", .string("A")), .init("$classes", .array([.string("A")]))]
    if what == "hints" {
      record.append(.init("$classhints", long))
    } else {
      record += (0..<100).map { .init("k\($0)", .integer(1)) }
    }
    let archive = try KeyedArchive(
      KeyedArchiveTests.archive([.dictionary(record), ["$class": .uid(1)]], top: ["root": .uid(2)]))
    #expect { try archive.tree() } throws: { ($0 as? PropertyListError)?.code == .damaged }
  }

  @Test("strings that differ only in Unicode normalization stay different, as values and keys, in every format")
  func spellings() throws {
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
    let list: PropertyList = .dictionary([
      .init(composed, .string(decomposed)), .init(decomposed, .array([.string(composed), .string(decomposed)])),
    ])
    func bytes(_ list: PropertyList) -> [[UInt8]] {
      switch list {
      case .string(let text): [Array(text.utf8)]
      case .array(let elements): elements.flatMap(bytes)
      case .dictionary(let entries): entries.flatMap { [Array($0.key.utf8)] + bytes($0.value) }
      default: []
      }
    }
    for format in [PropertyList.Format.binary, .xml] {
      let again = try PropertyList(try list.encoded(as: format))
      #expect(
        bytes(again).sorted { $0.lexicographicallyPrecedes($1) }
          == bytes(list).sorted { $0.lexicographicallyPrecedes($1) })
      #expect(again == list)
    }
    #expect(PropertyList.string(composed) != .string(decomposed))
    let archive = try KeyedArchive.encode([composed, decomposed])
    #expect(
      try KeyedArchive.decode([String].self, from: archive).map { Array($0.utf8) } == [
        Array(composed.utf8), Array(decomposed.utf8),
      ])
  }

  @Test("dictionary keys are kept even if they begin with $, and Foundation reads and writes them equally")
  func dollars() throws {
    let prices = ["$gold": 5, "$$silver": 7, "copper": 1]
    let archive = try KeyedArchive.encode(prices)
    #expect(try KeyedArchive.decode([String: Int].self, from: archive) == prices)
    let read = try NSKeyedUnarchiver.unarchivedObject(
      ofClasses: [NSDictionary.self, NSString.self, NSNumber.self], from: archive)
    #expect((read as? [String: Int]) == prices)
    let written = try NSKeyedArchiver.archivedData(withRootObject: prices as NSDictionary, requiringSecureCoding: true)
    #expect(try KeyedArchive.decode([String: Int].self, from: written) == prices)
  }

  @Test("a long text with many references is decoded without a copy for each")
  func longText() throws {
    let text = String(repeating: "a long text ", count: 10_000)
    let objects: [PropertyList] = [
      KeyedArchiveTests.name("NSString"), ["NS.bytes": .data(Data(text.utf8)), "$class": .uid(1)],
      KeyedArchiveTests.name("NSArray"),
      ["NS.objects": .array(Array(repeating: .uid(2), count: 100_000)), "$class": .uid(3)],
    ]
    let archive = try KeyedArchive(KeyedArchiveTests.archive(objects, top: ["root": .uid(4)]))
    // It would be 12 GB if each of them were a copy.
    let texts = try archive.decode([String].self)
    #expect(texts.count == 100_000 && texts.last?.utf8.count == text.utf8.count)
  }
}
