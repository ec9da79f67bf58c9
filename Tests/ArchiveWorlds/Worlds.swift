import Foundation
import KeepsakeArchive

@Archivable struct Item: Equatable {
  var kind: Int
  var count = 1
  var durability: Double = 1
}

@Archivable(subclasses: [Boss.self, Minion.self]) class Creature {
  var type: Int
  var name: String
  var position: SIMD2<Float>
  var inventory: [Item] = []
  weak var target: Creature?
  var friends: [Creature] = []
  @Unsaved var frames = 0

  init(type: Int, name: String) {
    self.type = type
    self.name = name
    position = SIMD2(Float(type), 2)
  }
}

@Archivable final class Boss: Creature { var rage = 0 }

@Archivable final class Minion: Creature {
  let master: Creature
  init(master: Creature) {
    self.master = master
    super.init(type: 9, name: "minion")
  }
}

final class Unlisted: Creature {}

@Archivable final class Node {
  var value: Int
  var next: Node?
  init(_ value: Int) { self.value = value }
}

@Archivable final class LetNode {
  let value: Int
  let next: LetNode?
  init(_ value: Int, _ next: LetNode?) {
    self.value = value
    self.next = next
  }
}

@Archivable enum Event: Equatable {
  case idle
  case moved(to: SIMD2<Float>, speed: Double = 1)
  case said(String, Int?)
  indirect case both(Event, Event)
}

@Archivable enum Rank: String {
  case low
  case middle = "mid"
  case high
}
@Archivable enum Level: Int, CaseIterable {
  case one = 1
  case two, three
}

@Archivable struct Everything: Equatable {
  var i = -5
  var i8: Int8 = -128
  var i16: Int16 = .min
  var i32: Int32 = .max
  var i64: Int64 = .min
  var u: UInt = .max
  var u8: UInt8 = 255
  var u16: UInt16 = 65535
  var u32: UInt32 = 7
  var u64: UInt64 = 1 << 56
  var f: Float = 1.5
  var d = -2.25
  var b = true
  var s = "Grüße, 世界 🚀"
  var c: Character = "é"
  var data = Data([1, 2, 3])
  var date = Date(timeIntervalSinceReferenceDate: 12345.5)
  var id = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
  var url = URL(string: "https://example.com/a?b=c")
  var v2 = SIMD2<Float>(1, 2)
  var v3 = SIMD3<Double>(1, 2, 3)
  var v4 = SIMD4<Int32>(1, 2, 3, -4)
  var point = CGPoint(x: 1, y: 2)
  var rect = CGRect(x: 1, y: 2, width: 3, height: 4)
  var none: Int?
  var some: String? = "x"
  var nested: [[Int?]] = [[1, nil], []]
  var map: [String: [Int]] = ["b": [1], "a": [], "c": [300, -70000]]
  var set: Set<Int> = [3, 1, 2]
  var wide: [Int] = [1, 2, .max, .min]
  var small: [Int] = [-128, 127]
  var bytes: [UInt8] = [0, 255]
  var halves: [UInt16] = [1, 65535]
  var floats: [Float] = [0.5, -.infinity]
  var doubles: [Double] = []
  var flags = [true, false]
  var event = Event.both(.moved(to: SIMD2(1, 1), speed: 3), .said("hi", nil))
  var rank = Rank.middle
  var levels: [Level: Int] = [.three: 3, .one: 1]
}

@Archivable struct Pair<A, B> {
  var first: A
  var second: B?
}

enum Space {
  @Archivable struct Ship: Equatable {
    private(set) var speed = 3.0, turn = 1.0
    init() {}
    mutating func go() { speed += 1 }
  }
  @Archivable fileprivate struct Hidden { var x = 1 }
  static func hiddenRoundTrip() throws -> Int {
    try Archive.decode(Hidden.self, from: Archive.encode(Hidden(x: 7))).x
  }
}

@Archivable class Parent {
  var children: [Child] = []
  var byName: [String: Child] = [:]
}

@Archivable final class Child {
  unowned let parent: Parent
  var name: String
  init(parent: Parent, name: String) {
    self.parent = parent
    self.name = name
  }
}

@Archivable struct World {
  var creatures: [Creature]
  var events: [Event] = []
  var name = "world"
}
