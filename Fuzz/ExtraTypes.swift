import Foundation
import KeepsakeArchive

/// A type that knows nothing of archives.
struct Foreign: Codable, Hashable {
  var name: String
  var number: Double?
  var inner: [Foreign] = []
}

/// What is rarer in saved games: ranges, wide and decimal numbers, `Codable` values.
@Archivable struct Extras {
  var range: Range<Int> = 1..<5
  var closed: ClosedRange<Double>?
  var words: [PartialRangeFrom<String>] = []
  var upTo: PartialRangeUpTo<UInt8>?
  var through: PartialRangeThrough<Int16>?
  var prices: [Decimal] = []
  var big: Int128 = 0
  var bigs: Set<UInt128> = []
  var waits: [Duration] = []
  @Coded var foreign = Foreign(name: "f")
  @Coded var maybe: Foreign?
  @Coded var byName: [String: Foreign] = [:]
  var boxed: [Coded<[Foreign?]>] = []
  var days = IndexSet()
  var row: ContiguousArray<Int32> = []
  var letter: Unicode.Scalar = "x"
  var vector: SIMD8<UInt8>?
  var small: Float16?
}

extension Changed {
  struct Foreign: Codable {
    var number: Float?
    var name: String?
    var inner: [Foreign]?
  }

  @Archivable(name: "Extras") struct Extras {
    @Coded var foreign: Foreign
    var through: PartialRangeThrough<Int64>?
    var range: Range<Int8>
    var closed: ClosedRange<Float> = 0...1
    var prices: [Decimal?] = []
    var bigs: Set<Int128> = []
    var big: Int128?
    var row: [Int?] = []
    @Coded var byName: [String: Foreign]?
    var vector: SIMD8<Int32>?
    var boxed: [Coded<[Foreign]>]?
    var small: Double = 1
  }
}
