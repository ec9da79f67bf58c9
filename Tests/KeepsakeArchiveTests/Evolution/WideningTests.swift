import Foundation
import KeepsakeArchive
import Testing

@testable import ArchiveWorlds

@Archivable private struct One<Value> { var value: Value }
/// The same field in a changed struct, so that it is read by its position instead of in order.
@Archivable(name: "One") private struct Two<Value> {
  var added = 0
  var value: Value
}
private enum Earlier {
  @Archivable struct Blow { var damage: Int32 = 3, gone = "x", kind = Kind.cut(depth: 1) }
  @Archivable enum Kind {
    case cut(depth: Int8)
    case burn([Blow])
  }
  @Archivable enum Event {
    case hit(Blow, by: String)
    case none
  }
}
private enum Present {
  @Archivable struct Blow { var critical = true, kind: Kind, damage: Int }
  @Archivable enum Kind {
    case burn([Blow])
    case cut(wide: Int = 4, depth: Int)
  }
  @Archivable enum Event {
    case none
    case hit(by: String, blow: Blow?)
    case miss
  }
}
// The payload's first value had no label, so its key is its position.
@Archivable(name: "Event") private enum PlacedEvent {
  case none
  case hit(Present.Blow, by: String, times: Int = 1)
}
@Archivable private struct Ordered { var a = "a", b = 2, c = [1.5], d: Int? = nil, e = Item(kind: 5) }
@Archivable(name: "Ordered") private struct Reordered {
  var e = Item(kind: 0), c: [Double] = [], a = "", d: Int? = 4, b = 0
}
@Archivable(name: "Pair") private struct Read { var first = 7, second = "d" }

/// Saves the field `value` as one type and reads it as another, through a struct with another declaration.
private func through<A: Archivable, B: Archivable>(_ value: A, as type: B.Type) throws -> B {
  try Archive.decode(Two<B>.self, from: Archive.encode(One(value: value))).value
}

@Suite struct WideningTests {
  /// For every pair of integer types, a value that fits is decoded; any other is a typed error, never a wrong number.
  @Test func integersKeepTheirValueInEveryOtherWidthOrAreRefused() throws {
    func pair<A: FixedWidthInteger & Archivable, B: FixedWidthInteger & Archivable>(_: A.Type, _: B.Type) throws {
      for value in [A.min, A.min &+ 1, 0, 1, 100, 127, A.max / 2, A.max - 1, A.max] {
        let values = [value, 0]
        if let wanted = B(exactly: value) {
          #expect(try Archive.decode(B.self, from: Archive.encode(value)) == wanted, "\(A.self) \(value) as \(B.self)")
          #expect(try through(value, as: B.self) == wanted, "\(A.self) \(value) as \(B.self)")
          #expect(try through(value, as: B?.self) == wanted, "\(A.self) \(value) as \(B?.self)")
          #expect(try through(values, as: [B].self) == [wanted, 0], "[\(A.self)] \(value) as [\(B.self)]")
        } else {
          for attempt in [
            { _ = try Archive.decode(B.self, from: Archive.encode(value)) }, { _ = try through(value, as: B.self) },
            { _ = try through(values, as: [B].self) },
          ] as [() throws -> Void] {
            let error = #expect(throws: ArchiveError.self, "\(A.self) \(value) as \(B.self)") { try attempt() }
            #expect(error?.code == .mismatch)
          }
        }
      }
    }
    func row<A: FixedWidthInteger & Archivable>(_ type: A.Type) throws {
      try pair(type, Int8.self)
      try pair(type, Int16.self)
      try pair(type, Int32.self)
      try pair(type, Int64.self)
      try pair(type, Int.self)
      try pair(type, UInt8.self)
      try pair(type, UInt16.self)
      try pair(type, UInt32.self)
      try pair(type, UInt64.self)
      try pair(type, UInt.self)
    }
    try row(Int8.self)
    try row(Int16.self)
    try row(Int32.self)
    try row(Int64.self)
    try row(Int.self)
    try row(UInt8.self)
    try row(UInt16.self)
    try row(UInt32.self)
    try row(UInt64.self)
    try row(UInt.self)
  }

  @Test func floatingPointNumbersTakeEachOtherAndIntegersThatTheyHoldExactly() throws {
    for value in [0, -0.0, 1.5, -Float.greatestFiniteMagnitude, .leastNonzeroMagnitude, .infinity, -.infinity]
      as [Float]
    {
      #expect(try through(value, as: Double.self) == Double(value))
      #expect(try through(Double(value), as: Float.self) == value)
      #expect(try through([value], as: [Double].self) == [Double(value)])
      #expect(try through([Double(value)], as: [Float].self) == [value])
    }
    #expect(try through(Float.nan, as: Double.self).isNaN && through(Double.nan, as: Float.self).isNaN)
    #expect(try through(0.1, as: Float.self) == 0.1)
    #expect(
      try through(16_777_216, as: Float.self) == 16_777_216 && through(Int.min, as: Double.self) == Double(Int.min))
    #expect(try through(UInt64.max - 2047, as: Double.self) == Double(UInt64.max - 2047))
    for attempt in [
      { _ = try through(16_777_217, as: Float.self) }, { _ = try through(Int.max, as: Double.self) },
      { _ = try through(UInt64.max, as: Double.self) }, { _ = try through(1e300, as: Float.self) },
      { _ = try through(1.0, as: Int.self) }, { _ = try through([1e300], as: [Float].self) },
      { _ = try through(Float(2), as: Int8.self) }, { _ = try through(true, as: Int.self) },
      { _ = try through(1, as: Bool.self) },
    ] as [() throws -> Void] {
      let error = #expect(throws: ArchiveError.self) { try attempt() }
      #expect(error?.code == .mismatch)
    }
  }

  @Test func valuesBecomeOptionalAndBack() throws {
    #expect(try through(5, as: Int?.self) == 5 && through(5, as: Int??.self) == .some(.some(5)))
    #expect(try through(Int?.some(5), as: Int.self) == 5 && through(Int??.some(.some(5)), as: Int.self) == 5)
    #expect(try through(Int8?.some(5), as: Int64?.self) == 5)
    #expect(try through([1, 2], as: [Int]?.self) == [1, 2] && through([Int]?.some([1]), as: [Int].self) == [1])
    #expect(try through([1, 2], as: [Int?].self) == [1, 2] && through([1, 2] as [Int?], as: [Int].self) == [1, 2])
    #expect(try through("x", as: String?.self) == "x" && through(Item(kind: 1), as: Item?.self) == Item(kind: 1))
    #expect(try through(Event.said("x", nil), as: Event?.self) == .said("x", nil))
    for attempt in [
      { _ = try through(Int?.none, as: Int.self) }, { _ = try through([1, nil], as: [Int].self) },
      { _ = try through(Item?.none, as: Item.self) },
    ] as [() throws -> Void] {
      let error = #expect(throws: ArchiveError.self) { try attempt() }
      #expect(error?.code == .missingField)
    }
    // With a default value, an empty optional counts as missing.
    let empty = Pair<Int?, String>(first: nil, second: nil)
    let copy = try Archive.decode(Read.self, from: Archive.encode(empty))
    #expect(copy.first == 7 && copy.second == "d")
  }

  @Test func elementsWidenInsideOfEveryCollection() throws {
    #expect(try through([[Int8(1)], []], as: [[Int]].self) == [[1], []])
    #expect(try through(Set([Int8(1), -2]), as: Set<Int>.self) == [1, -2])
    #expect(try through(["a": Int8(1)], as: [String: Int?].self) == ["a": 1])
    #expect(try through([Int8(5): Float(0.5)], as: [Int: Double].self) == [5: 0.5])
    #expect(try through([[Float(1), 2]] as [[Float]?], as: [[Double]?].self) == [[1, 2]])
    #expect(try through(SIMD2<Float>(1, 2), as: SIMD2<Double>.self) == SIMD2(1, 2))
    #expect(try through([SIMD3<Float>(1, 2, 3)], as: [SIMD3<Double>].self) == [SIMD3(1, 2, 3)])
    #expect(try through(SIMD4<Int16>(1, 2, 3, 4), as: SIMD4<Int32>.self) == SIMD4(1, 2, 3, 4))
    #expect(try through(SIMD2<Int8>(-1, 2), as: SIMD2<Double>.self) == SIMD2(-1, 2))
    #expect(try through(SIMD2<UInt64>(1, .max), as: SIMD2<UInt64>.self) == SIMD2(1, .max))
    #expect(try through([1, 300, -70_000], as: [Double].self) == [1, 300, -70_000])
    #expect(try through([1, 300, -70_000], as: [Int?].self) == [1, 300, -70_000])
    #expect(try through([1, Int.min, .max], as: [Int64??].self) == [1, .min, .max])
    #expect(try through([UInt16(1), 65_535] as [UInt16?], as: [UInt32].self) == [1, 65_535])
    #expect(try through([[Int16(-300)], [5]], as: [[Float?]].self) == [[-300], [5]])
    #expect(try through([1.5, 2], as: [Double?].self) == [1.5, 2] && through([true], as: [Bool?].self) == [true])
    for attempt in [
      { _ = try through(SIMD2<Float>(1, 2), as: SIMD3<Float>.self) },
      { _ = try through(SIMD2<Int32>(1, 70_000), as: SIMD2<Int16>.self) },
      { _ = try through(SIMD2<Float>(1, 2), as: SIMD2<Int32>.self) }, { _ = try through([Int.max], as: [Double].self) },
    ] as [() throws -> Void] {
      let error = #expect(throws: ArchiveError.self) { try attempt() }
      #expect(error?.code == .mismatch)
    }
  }

  @Test func aStructInsideOfAPayloadMayChange() throws {
    let saved = Earlier.Event.hit(Earlier.Blow(kind: .burn([Earlier.Blow(damage: 9)])), by: "orc")
    guard case .hit(let blow, by: "orc", times: 1) = try Archive.decode(PlacedEvent.self, from: Archive.encode(saved)),
      case .burn(let inner) = blow.kind, case .cut(wide: 4, depth: 1)? = inner.first?.kind
    else {
      Issue.record("the decoded event has another shape")
      return
    }
    #expect(blow.damage == 3 && blow.critical && inner.map(\.damage) == [9])
    guard case .hit(by: "orc", blow: nil) = try Archive.decode(Present.Event.self, from: Archive.encode(saved)) else {
      Issue.record("a payload without its old label was decoded as something else")
      return
    }
  }

  @Test func fieldsInAnyOrderComeBackInTheirPlaces() throws {
    let copy = try Archive.decode([Reordered].self, from: Archive.encode([Ordered(), Ordered(a: "z", b: 3)]))
    #expect(
      copy.map(\.a) == ["a", "z"] && copy.map(\.b) == [2, 3] && copy[1].c == [1.5] && copy[0].d == nil
        && copy[0].e.kind == 5)
  }
}
