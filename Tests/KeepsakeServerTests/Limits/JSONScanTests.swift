#if Cloud
import Foundation
import KeepsakeReplication
import Testing

@testable import KeepsakeServer

@Suite("Counting JSON without decoding it")
struct JSONScanTests {
  @Test(
    "values, keys and levels are counted, whatever stands in texts",
    arguments: [
      ("", 0, 0), ("1", 1, 0), ("[]", 1, 1), ("[1,2, 3 ]", 4, 1), (#"{"a":1}"#, 3, 1),
      (#"{"a":[{"b":null},true,-1.5e3]}"#, 8, 3), (#"["[[[[",",,,,","\"[{\\"]"#, 4, 1), (#"["\\",1]"#, 3, 1),
      ("[[[[", 4, 4), ("]]]]", 0, 0), (#""unended"#, 1, 0), (#""\"#, 1, 0),
    ])
  func counts(text: String, tokens: Int, depth: Int) {
    let scan = JSONScan(Data(text.utf8))
    #expect(scan.tokens == tokens && scan.depth == depth)
  }

  @Test("it doesn't matter in which parts a text arrives, or what follows it when its length comes first")
  func parts() {
    let text = Data(#"{"a\\":[{"b":null},true,-1.5e3,"\"[{"],"c":"x"}"#.utf8)
    let whole = JSONScan(text)
    #expect(whole.tokens == 11 && whole.depth == 3)
    let framed = Data([0, 0, 0, UInt8(text.count)]) + text + Data("[[[[0,0".utf8)
    for first in 0...framed.count {
      for second in [first, min(first + 1, framed.count), framed.count] {
        var scan = JSONScan(lengthBytes: 4)
        for part in [framed[..<first], framed[first..<second], framed[second...]] {
          part.withUnsafeBytes { scan.read($0) }
        }
        #expect(scan.tokens == whole.tokens && scan.depth == whole.depth, "\(first) \(second)")
      }
    }
  }

  @Test("a length that is longer than what arrives, or as long as four bytes can say, ends no program")
  func lengths() {
    for length: [UInt8] in [[], [255], [255, 255, 255, 255], [0, 0, 0, 0]] {
      var scan = JSONScan(lengthBytes: 4)
      (Data(length) + Data("[1]".utf8)).withUnsafeBytes { scan.read($0) }
      #expect(scan.tokens == (length == [255, 255, 255, 255] ? 2 : 0))
    }
  }

  @Test("a scan ends soon after its limits")
  func limits() {
    let zeros = Data(("[" + String(repeating: "0,", count: 100_000) + "0]").utf8)
    #expect(JSONScan(zeros, limit: 50).tokens == 51)
    let deep = Data(String(repeating: "[", count: 100_000).utf8)
    #expect(JSONScan(deep, deepest: 7).depth == 8)
  }

  @Test("the largest checkpoint of the smallest values stays below the limit of values")
  func largestCheckpoint() throws {
    // 24 bytes each, as a checkpoint's size is counted.
    let elements = Dictionary(uniqueKeysWithValues: (1...UInt64(10_000)).map { ($0, Scalar.int(Int64($0))) })
    let set = ObservedSet([WriterID(1): ObservedSet.Additions(seen: NumberRanges([1...10_000]), present: elements)])
    let update = CellUpdate(key: CellKey(collection: "c", key: "k"), state: CellState(value: .set(set)))
    #expect(update.size <= ExchangeRules.maximumCellBytes)
    let scan = JSONScan(try JSONEncoder().encode(ExchangeRequest(cursor: .start, cells: [update], limit: 1)))
    let cells = ExchangeRules.maximumCommitBytes / update.size + 1
    #expect(scan.tokens * cells <= ServerLimits.jsonTokens && scan.depth <= ServerLimits.jsonDepth / 2)
  }
}
#endif
