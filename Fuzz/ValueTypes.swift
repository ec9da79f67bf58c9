import Foundation
import KeepsakeArchive

@Archivable struct Nothing: Hashable {}

@Archivable struct Place: Hashable {
  var x: Int32
  var y: Int32 = 0
}

@Archivable indirect enum Tree: Hashable {
  case leaf
  case named(String)
  case branch(Tree, Tree)
  case place(Place?, at: [Place])
}

@Archivable enum Suit: UInt8, Hashable { case hearts, spades }

@Archivable struct Values {
  var tree = Tree.leaf
  var nested: Int???
  var maybe: [String??] = []
  var nothings: [Nothing] = []
  var nothing: Nothing?
  var places: Set<Place> = []
  var trees: [Tree: Tree] = [:]
  var suits: [Suit: [Suit]] = [:]
  var matrix: [[[UInt8]]] = []
  var optionals: [Double?] = []
  var counter = Counter()
  var counters: [String: Counter] = [:]
  var shorts: [Int16] = []
  var words: [UInt32] = []
  var longs: [UInt64] = []
  var numbers: Set<Double> = []
  var flags: [Bool] = []
  var vectors: [SIMD3<Int8>] = []
  var bits: SIMD4<UInt64>?
  var sizes: [CGSize] = []
  var dates: [Date] = []
  var ids: [UUID: Data] = [:]
  var urls: [URL] = []
  var letters: [Character] = []
  var pairs: [Pair<Int8, Pair<String, Float>>] = []
}
