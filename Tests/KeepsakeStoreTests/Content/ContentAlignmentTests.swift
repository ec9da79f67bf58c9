import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

struct ContentAlignmentTests {
  /// Contents named by letters, of a thousand bytes each unless a length is given.
  private func parts(_ text: String, _ lengths: [Int]? = nil) -> [ContentAlignment.Part] {
    text.enumerated().map { index, letter in
      ContentAlignment.Part(hash: ContentHash(of: Data("\(letter)".utf8)), length: lengths?[index] ?? 1_000)
    }
  }

  /// The bases that `new` gets in `old`, as letters; "-" for none.
  private func bases(_ new: [ContentAlignment.Part], in old: [ContentAlignment.Part], _ letters: String) -> String {
    let names = Dictionary(uniqueKeysWithValues: Set(letters).map { (ContentHash(of: Data("\($0)".utf8)), $0) })
    return String(ContentAlignment(of: new, in: old, tolerance: 100).bases.map { $0.flatMap { names[$0] } ?? "-" })
  }

  @Test(
    "a changed content gets as its base the earlier content at the same position",
    arguments: [
      ("abcd", "abcd", "abcd"), ("aXcd", "abcd", "abcd"), ("Xbcd", "abcd", "abcd"), ("abcX", "abcd", "abcd"),
      ("aXYd", "abcd", "abcd"),
      ("aXYZd", "abcd", "abccd"), ("aXd", "abcd", "abd"), ("aXbcd", "abcd", "abbcd"), ("abcdX", "abcd", "abcdd"),
      ("XY", "", "--"), ("", "abc", ""), ("WXYZ", "a", "aaaa"), ("W", "abc", "a"), ("aaXa", "aaba", "aaba"),
    ])
  func alignment(new: String, old: String, expected: String) {
    #expect(bases(parts(new), in: parts(old), new + old) == expected)
  }

  /// Lengths of contents before and after all of them changed, and the earlier content that each is compared with.
  @Test(
    "if several contents changed, their lengths decide which earlier content each is compared with",
    arguments: [
      // Changed in place; one more cut; one cut less.
      ([500, 2_000, 900], [500, 2_000, 900], "abc"), ([500, 2_000, 900], [500, 1_200, 800, 900], "abbc"),
      ([500, 2_000, 900], [2_500, 900], "bc"),
      // A little inserted everywhere, and removed.
      ([500, 2_000, 900, 700], [540, 2_060, 930, 790], "abcd"),
      ([500, 2_000, 900, 700], [460, 1_950, 820, 650], "abcd"),
      // Much inserted at the beginning, and in the middle.
      ([500, 2_000, 900, 700], [1_700, 2_010, 905, 700], "abcd"),
      ([500, 2_000, 900, 700], [500, 4_000, 900, 700], "abcd"),
      // Much removed.
      ([500, 2_000, 900, 700], [500, 900, 900, 700], "abcd"),
    ])
  func lengths(old: [Int], new: [Int], expected: String) {
    let letters = String("abcdefgh".prefix(old.count))
    #expect(bases(parts(String("STUVWXYZ".prefix(new.count)), new), in: parts(letters, old), letters) == expected)
  }

  /// Lengths before and after a change, and the better lengths after it; nil if the lengths after it stay.
  @Test(
    "changed parts are cut where they were cut before, if their bytes no longer cause the same cuts",
    arguments: [
      ([500, 2_000, 900], [500, 2_000, 900], nil), ([500, 2_000, 900], [2_500, 900], [500, 2_000, 900]),
      ([500, 2_000, 900], [500, 1_200, 800, 900], [500, 2_000, 900]),
      ([500, 2_000, 900], [540, 2_960], [540, 2_000, 960]),
      // Grown beyond the maximum of one part: cut where its bytes determine, after all.
      ([500, 2_000, 900, 700], [500, 1_200, 3_000, 900, 700], [500, 1_200, 3_000, 900, 700]),
      ([500], [300, 300, 400], [1_000]),
      // No part is made smaller than the minimum.
      ([500, 2_000, 900], [2_550], [500, 2_050]), ([500, 2_000], [600], nil),
    ] as [([Int], [Int], [Int]?)])
  func recuts(old: [Int], new: [Int], expected: [Int]?) {
    let alignment = ContentAlignment(
      of: parts(String("STUVWXYZ".prefix(new.count)), new), in: parts(String("abcdefgh".prefix(old.count)), old),
      tolerance: 100)
    let recuts = alignment.recuts(minimum: 150, maximum: 4_000)
    let isAsNow = expected == new || expected == nil
    #expect(recuts.map(\.lengths) == (isAsNow ? [] : [expected ?? []]), "\(recuts)")
    #expect(recuts.allSatisfy { $0.range == 0..<new.count })
  }

  @Test(
    "for random versions, recutting keeps all bytes and the minimum length, and each content gets a base",
    arguments: 0..<200 as Range<UInt64>)
  func anything(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    func some(_ count: Int) -> [ContentAlignment.Part] {
      (0..<count).map { _ in
        let letter = UInt8.random(in: 0...9, using: &random)
        return ContentAlignment.Part(
          hash: ContentHash(of: Data([letter])), length: 300 + Int(letter) * Int.random(in: 1...200, using: &random))
      }
    }
    let (old, new) = (some(.random(in: 0...12, using: &random)), some(.random(in: 0...12, using: &random)))
    let alignment = ContentAlignment(of: new, in: old, tolerance: 50)
    #expect(alignment.bases.count == new.count, "seed \(seed)")
    let hashes: [ContentHash] = new.map(\.hash)
    for base in alignment.bases {
      if let base { #expect(!old.isEmpty || hashes.contains(base), "seed \(seed)") } else { #expect(old.isEmpty) }
    }
    for recut in alignment.recuts(minimum: 200, maximum: 2_500) {
      #expect(recut.lengths.reduce(0, +) == bytes(of: new[recut.range]), "seed \(seed)")
      #expect(recut.lengths.allSatisfy { $0 >= 200 }, "seed \(seed), \(recut)")
    }
  }

  @Test("records with impossible lengths are aligned like any other", arguments: [Int.max, .min, -1, 0])
  func hostileLengths(length: Int) throws {
    let folder = try TemporaryFolder()
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let hashes = (0..<4).map { ContentHash(of: Data([UInt8($0)])) }
    // One of the contents is in the store.
    _ = try store.write { try $0.keepContent(Data([0])) }
    let claims = [1, 4].map { record(1, contents: Array(hashes.prefix($0)), length: length) }
    let own = parts("WXYZ", [300 << 10, 700 << 10, 2 << 20, 1 << 20])
    try store.read { transaction throws in
      for claim in claims {
        let alignment = ContentAlignment(of: own, in: try transaction.parts(of: claim))
        #expect(alignment.bases.allSatisfy { $0 != nil })
        for recut in alignment.recuts(minimum: Segmenter.minimum, maximum: Segmenter.maximum) {
          #expect(recut.lengths.reduce(0, +) == bytes(of: own[recut.range]))
        }
      }
    }
  }

  private func bytes(of parts: ArraySlice<ContentAlignment.Part>) -> Int {
    parts.reduce(0) { (sum: Int, part: ContentAlignment.Part) -> Int in sum + part.length }
  }
}
