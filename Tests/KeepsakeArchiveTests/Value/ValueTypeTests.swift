import Foundation
import KeepsakeInspection
import Testing

@testable import ArchiveWorlds
@testable import KeepsakeArchive

/// A game's own matrix.
private struct Placement: ArchivableMatrix, Equatable {
  var x = SIMD2<Float>(1, 0)
  var y = SIMD2<Float>(0, 1)
  var origin = SIMD2<Float>(3, 4)

  init() {}
  static var archiveColumnCount: Int { 3 }
  var archiveColumns: [SIMD2<Float>] { [x, y, origin] }
  init(archiveColumns columns: [SIMD2<Float>]) { (x, y, origin) = (columns[0], columns[1], columns[2]) }
}

@Archivable private struct Spans: Equatable {
  var levels = 1..<10
  var chances = 0.25...0.75
  var from = 3...
  var upTo: PartialRangeUpTo<Int> = ..<7
  var through: PartialRangeThrough<Double> = ...1.5
  var names: ClosedRange<String> = "a"..."m"
  var days: Range<Date>? = Date(timeIntervalSinceReferenceDate: 1)..<Date(timeIntervalSinceReferenceDate: 2)
  var prizes: [Range<Int>: String] = [0..<10: "few", 10..<20: "more"]
  var empty: [Range<Int>] = [0..<0]

  static func == (a: Spans, b: Spans) -> Bool {
    a.levels == b.levels && a.chances == b.chances && a.from.lowerBound == b.from.lowerBound
      && a.upTo.upperBound == b.upTo.upperBound && a.through.upperBound == b.through.upperBound && a.names == b.names
      && a.days == b.days && a.prizes == b.prizes && a.empty == b.empty
  }
}

@Archivable(name: "Span") private struct NarrowSpan {
  var span: Range<Int32> = -5..<5
  var closed: ClosedRange<Float> = 0.5...1
}
@Archivable(name: "Span") private struct WideSpan {
  var span: Range<Int>
  var closed: ClosedRange<Double>
}

// The same type description as a range's, so that these bytes are read as a range without any mapping.
@Archivable(name: "Range<Int>") private struct FalseRange { var from = 5, upTo = 3 }
@Archivable(name: "ClosedRange<Double>") private struct FalseClosedRange { var from = Double.nan, through = 1.0 }
@Archivable(name: "PartialRangeFrom<Double>") private struct FalseStart { var from = Double.nan }

@Archivable private enum Key: Hashable {
  case name(String)
  case place(Int, Int)
  case none
}
@Archivable private struct Square: Hashable { var x = 0, y = 0 }

@Archivable(name: "Pair") private struct OnlySecond { var second: String? }

@Archivable private struct Later {
  var before = 7
  var later = Data("what a later program knows".utf8)
  var list = [Data([1]), Data()]
  var after = "end"
}
@Archivable(name: "Later") private struct Earlier {
  var before = 0
  var after = ""
}

@Suite struct ValueTypeTests {
  func again<V: Archivable>(_ value: V) throws -> V { try Archive.decode(V.self, from: Archive.encode(value)) }

  private func code<V: Archivable>(_ type: V.Type, from data: Data) -> ArchiveError.Code? {
    do { _ = try Archive.decode(type, from: data) } catch { return (error as? ArchiveError)?.code }
    return nil
  }

  @Test func rangesComeBack() throws {
    #expect(try again(Spans()) == Spans())
    #expect(try again([1..<3, 5..<5]) == [1..<3, 5..<5])
  }

  @Test func boundsAreWidenedLikeOtherFields() throws {
    let wide = try Archive.decode(WideSpan.self, from: Archive.encode(NarrowSpan()))
    #expect(wide.span == -5..<5 && wide.closed == 0.5...1)
    let bytes = try Archive.encode(WideSpan(span: 0..<1 << 40, closed: 0...1))
    #expect(code(NarrowSpan.self, from: bytes) == .mismatch)
  }

  @Test func aClosedRangeIsNotTakenForAHalfOpenOne() throws {
    #expect(code(Range<Int>.self, from: try Archive.encode(1...3)) == .mismatch)
    #expect(code(ClosedRange<Int>.self, from: try Archive.encode(1..<3)) == .mismatch)
    // Inside of a value, a range's fields tell.
    let closed = try Archive.encode(Pair(first: 1...3, second: ""))
    #expect(code(Pair<Range<Int>, String>.self, from: closed) == .missingField)
  }

  @Test func aRangeThatEndsBeforeItBeginsIsDamageAndNoTrap() throws {
    #expect(code(Range<Int>.self, from: try Archive.encode(FalseRange())) == .damaged)
    #expect(code(Range<Int8>.self, from: try Archive.encode(FalseRange())) == .damaged)
    #expect(code(ClosedRange<Double>.self, from: try Archive.encode(FalseClosedRange())) == .damaged)
    #expect(try Archive.decode(PartialRangeFrom<Double>.self, from: Archive.encode(FalseStart())).lowerBound.isNaN)
  }

  @Test func pricesKeepEveryDigit() throws {
    var values: [Decimal] = [
      0, 1, -1, 150, .pi, .greatestFiniteMagnitude, -.greatestFiniteMagnitude, .leastNonzeroMagnitude,
    ]
    for text in ["0.1", "-19.99", "340282366920938463463374607431768211455", "1e-128", "-3e127", "123456789.000000001"]
    {
      values.append(try #require(Decimal(string: text)))
    }
    var random = Seeded(11)
    for _ in 0..<500 {
      let digits = Decimal(UInt64.random(in: 0 ... .max, using: &random))
      let sign: FloatingPointSign = Bool.random(using: &random) ? .minus : .plus
      values.append(Decimal(sign: sign, exponent: .random(in: -100...100, using: &random), significand: digits))
    }
    #expect(try again(values) == values, "seed 11")
    #expect(try again(Decimal.nan).isNaN)
    // Two representations of the same number give the same bytes.
    let (tens, ones) = (
      Decimal(sign: .plus, exponent: 3, significand: 20), Decimal(sign: .plus, exponent: 4, significand: 2)
    )
    #expect(try tens == ones && Archive.encode(tens) == Archive.encode(ones))
    #expect(try Archive.decode(Decimal.self, from: Archive.encode(-42)) == -42)
    #expect(code(Decimal.self, from: try Archive.encode(0.1)) == .mismatch)
  }

  @Test func bytesThatAreNoDecimalAreDamage() throws {
    let good = try Archive.encode(Decimal(15))
    // The root section: length 3, exponent 0, sign 0, significand 15.
    let root: [UInt8] = [7, 0, 0, 15]
    #expect(Array(good[16..<20]) == root)
    var sign = good
    sign[18] = 2
    #expect(code(Decimal.self, from: Archive.resealed(sign)) == .damaged)
    #expect(throws: ArchiveError.self) { try ArchiveInspection(of: Archive.resealed(sign)) }
    let long = try Archive.encode(Decimal(string: "340282366920938463463374607431768211455"))
    let count = try #require(long[16...].firstIndex(of: 18 << 1 | 1))
    var short = long
    short[count] = 1 << 1 | 1
    #expect(code(Decimal?.self, from: Archive.resealed(short)) == .damaged)
    // Any exponent can be decoded.
    for byte in UInt8.min ... .max {
      var other = long
      other[count + 1] = byte
      #expect(code(Decimal?.self, from: Archive.resealed(other)) == nil)
    }
  }

  @Test func wideNumbersAndDurationsComeBack() throws {
    let signed: [Int128] = [0, -1, .min, .max, 1 << 64]
    let unsigned: [UInt128] = [0, .max, 1 << 64]
    let durations: [Duration] = [
      .zero, .seconds(3), .nanoseconds(-1), Duration(attoseconds: .max), Duration(attoseconds: .min),
    ]
    #expect(try again(signed) == signed)
    #expect(try again(unsigned) == unsigned)
    #expect(try again(durations) == durations)
    #expect(try Archive.decode(Int128.self, from: Archive.encode(Int64.min)) == Int128(Int64.min))
    #expect(try Archive.decode([UInt128].self, from: Archive.encode([UInt64]())) == [])
    #expect(try Archive.decode(Int8.self, from: Archive.encode(Int128(-7))) == -7)
    #expect(try Archive.decode(UInt128.self, from: Archive.encode(Int128.max)) == UInt128(Int128.max))
    #expect(code(Int.self, from: try Archive.encode(Int128.max)) == .mismatch)
    #expect(code(UInt128.self, from: try Archive.encode(-1)) == .mismatch)
    #expect(code(Int128.self, from: try Archive.encode("1")) == .mismatch)
    #expect(code(Duration.self, from: try Archive.encode(5)) == .mismatch)
    #expect(try ArchiveInspection(of: Archive.encode(Int128.max)).root == .decimal("\(Int128.max)"))
    #expect(try ArchiveInspection(of: Archive.encode(UInt128(9))).root == .integer(9))
  }

  #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
  @Test func halfFloatsComeBack() throws {
    let values: [Float16] = [0, -1.5, .infinity, .greatestFiniteMagnitude, .leastNonzeroMagnitude]
    #expect(try again(values) == values)
    #expect(try again(Float16.nan).isNaN)
    #expect(try Archive.decode(Float16.self, from: Archive.encode(0.5)) == 0.5)
    #expect(code(Float16.self, from: try Archive.encode(100_000)) == .mismatch)
  }
  #endif

  @Test func listsOfScreenLengthsAreListsOfNumbers() throws {
    let lengths: [CGFloat] = [0.5, -1, 1e300, 0.1 + 0.2]
    let bytes = try Archive.encode(Pair(first: lengths, second: "after"))
    #expect(try Archive.decode(Pair<[CGFloat], String>.self, from: bytes).first == lengths)
    #expect(try Archive.decode(Pair<[Double], String>.self, from: bytes).first == lengths.map { Double($0) })
    #expect(
      try Archive.decode(Pair<CGFloat?, String>.self, from: Archive.encode(Pair(first: 0.1 + 0.2, second: ""))).first
        == 0.1 + 0.2)
    #expect(try ArchiveInspection(of: bytes).root["first"] == .array(lengths.map { .number(Double($0)) }))
    #expect(try ArchiveInspection(of: bytes).root["second"] == .string("after"))
    #expect(try Archive.decode(OnlySecond.self, from: bytes).second == "after")
  }

  @Test func wholeNumbersInListsAreWidened() throws {
    #expect(try Archive.decode([Int128].self, from: Archive.encode([1, -300, 70_000])) == [1, -300, 70_000])
    #expect(try Archive.decode([Decimal].self, from: Archive.encode([UInt16(1), 65_535])) == [1, 65_535])
    #expect(try Archive.decode([Int].self, from: Archive.encode([Int128(1), -300])) == [1, -300])
    #expect(try Archive.decode(Set<Int128>.self, from: Archive.encode(Set([1, 2]))) == [1, 2])
  }

  @Test func slicesAreArraysAndTextIsText() throws {
    let numbers = [1, 2, 300]
    #expect(try Archive.encode(ContiguousArray(numbers)) == Archive.encode(numbers))
    #expect(try Archive.encode(numbers[...]) == Archive.encode(numbers))
    #expect(try Archive.decode(ContiguousArray<Int>.self, from: Archive.encode(numbers)) == ContiguousArray(numbers))
    #expect(
      try Array(
        Archive.decode(ArraySlice<Int64>.self, from: Archive.encode([0, 1, 2, 300].dropFirst().map { Int32($0) }))) == [
          1, 2, 300,
        ])
    #expect(try again("Grüße, Welt".prefix(5)) == "Grüße")
    #expect(try again(["e\u{301}".unicodeScalars.last, nil]) == ["\u{301}", nil])
    #expect(code(Unicode.Scalar.self, from: try Archive.encode("ab")) == .mismatch)
    #expect(code(Unicode.Scalar.self, from: try Archive.encode("")) == .mismatch)
  }

  @Test func matricesAreTheirColumns() throws {
    #expect(try again(Placement()) == Placement())
    #expect(try Archive.decode([SIMD2<Double>].self, from: Archive.encode(Placement()))[2] == SIMD2(3, 4))
    #expect(code(Placement.self, from: try Archive.encode([SIMD2<Float>(1, 2)])) == .mismatch)
  }

  @Test func wideVectorsComeBack() throws {
    let wave = SIMD16<Float>((0..<16).map { Float($0) / 3 })
    #expect(try again(wave) == wave)
    #expect(try again(SIMD8<Int16>(repeating: -3)) == SIMD8(repeating: -3))
    #expect(try again(SIMD32<UInt8>(repeating: 3)) == SIMD32(repeating: 3))
    #expect(try again(SIMD64<Double>(repeating: 0.5)) == SIMD64(repeating: 0.5))
    #expect(
      try Archive.decode(SIMD16<Double>.self, from: Archive.encode(SIMD16<Float>(repeating: 2))) == SIMD16(repeating: 2)
    )
    #expect(code(SIMD8<Float>.self, from: try Archive.encode(wave)) == .mismatch)
  }

  @Test func regionsAndIndexSetsComeBack() throws {
    let zone = try #require(TimeZone(secondsFromGMT: 3600))
    #expect(try again([zone]) == [zone])
    #expect(code(TimeZone.self, from: try Archive.encode("Moon/Tranquility")) == .mismatch)
    #expect(try again(Locale(identifier: "de_CH")).identifier == "de_CH")
    var set = IndexSet(integersIn: 3..<8)
    set.insert(20)
    #expect(try again(set) == set)
    #expect(try again(IndexSet()) == IndexSet())
    for bad in [[-1..<2], [5..<6, 3..<4], [0..<2, 1..<3], [2..<2], [0..<Int.max]] {
      #expect(code(IndexSet.self, from: try Archive.encode(bad)) == .damaged, "\(bad)")
    }
  }

  @Test func optionalsOfOptionalsKeepTheirLevels() throws {
    let values: [Int??] = [nil, .some(nil), 3]
    let copy = try again(values)
    #expect(copy == values && copy[0] == nil && copy[1] != nil)
    #expect(try again(["a": Int?.none, "b": 1]) == ["a": nil, "b": 1])
    #expect(try Archive.decode(Int??.self, from: Archive.encode(Int?.some(4))) == 4)
    #expect(try Archive.decode([Int?].self, from: Archive.encode([Int??.some(4)])) == [4])
    let objects: [Token??] = [nil, .some(nil), Token(3)]
    let tokens = try again(objects)
    #expect(tokens[0] == nil && tokens[1] != nil && tokens[2]??.id == 3)
  }

  @Test func anythingArchivableIsAKey() throws {
    let byKey: [Key: Int] = [.name("x"): 1, .place(1, 2): 2, .none: 3]
    #expect(try again(byKey) == byKey)
    let byCell: [Square: [Key]] = [Square(x: 1): [.none], Square(y: 1): []]
    #expect(try again(byCell) == byCell)
    let byOptional: [Int?: Set<Square>] = [nil: [Square()], 3: []]
    #expect(try again(byOptional) == byOptional)
    let byList: [[Int]: Set<Set<Int>>] = [[1, 2]: [[1], [1, 2]], []: []]
    #expect(try again(byList) == byList)
    let byToken = [Token(1): "one", Token(2): "two"]
    #expect(try again(byToken) == byToken)
    let options: [String: Options] = ["on": .music, "off": []]
    #expect(try again(options) == options)
  }

  /// As a later version of the format might write it: the same bytes with a type code that isn't known yet.
  @Test func whatALaterProgramAddsIsPassedOver() throws {
    for later in [UInt8(64), 70, 79] {
      var bytes = try Archive.encode(Later())
      let field = try #require(bytes.range(of: Data("later".utf8) + [0, 13]))
      bytes[field.upperBound - 1] = later
      let list = try #require(bytes.range(of: Data("list".utf8) + [0, 33, 13]))
      bytes[list.upperBound - 1] = later
      bytes = Archive.resealed(bytes)
      let earlier = try Archive.decode(Earlier.self, from: bytes)
      #expect(earlier.before == 7 && earlier.after == "end")
      let inspection = try ArchiveInspection(of: bytes)
      #expect(
        inspection.root["later"] == .data(Later().later)
          && inspection.root["list"] == .array([.data(Data([1])), .data(Data())]))
      #expect(code(Later.self, from: bytes) == .tooNew)
    }
  }
}
