import Foundation
import TestSupport
import Testing

@testable import ArchiveWorlds
@testable import KeepsakeInterchange

/// The positions of errors in random documents. An error is at the first character with which the text can't be the
/// beginning of a valid one; numbers out of range, halves of surrogate pairs and repeated names, which are reported
/// where they begin, are in `JSONErrorTests`.
@Suite struct JSONErrorPositionTests {
  /// Characters that could be too many anywhere.
  private static let junk = [
    "?", "@", "`", "=", ";", "x", "\"", "'", "[", "]", "{", "}", ":", ",", "/", "\\", "+", ".",
  ]
  private static let foreign = ["\u{1}", "\u{301}", "“", "😀", "\u{200B}", "\n", "\u{2028}", "ü"]

  private struct Position: Comparable {
    var line: Int
    var column: Int

    static func < (a: Position, b: Position) -> Bool { (a.line, a.column) < (b.line, b.column) }
  }

  /// The position of the error in a text; nil if it is valid but for a repeated name, which a name that is cut off may
  /// become.
  private func error(in text: some StringProtocol) throws -> Position? {
    do {
      _ = try JSONReader.json(fromJSON5: Data(text.utf8))
      return nil
    } catch let error as StructuredFileError {
      if error.message.contains("the object has this name already") { return nil }
      let match = try #require(error.message.prefixMatch(of: /line (\d+), column (\d+): expected .+, found ./))
      return Position(line: try #require(Int(match.1)), column: try #require(Int(match.2)))
    }
  }

  private func position(of index: String.Index, in text: String) -> Position {
    Array(text.utf8).withUnsafeBufferPointer { bytes in
      let position = JSONPosition(of: text.utf8.distance(from: text.startIndex, to: index), in: bytes)
      return Position(line: position.line, column: position.column)
    }
  }

  /// Returns a random document with a character too many, and where that was inserted.
  private func altered(_ seed: UInt64, by junk: [String]) -> (text: String, index: String.Index) {
    var random = Seeded(seed)
    let scalars = Array(RandomJSON5(seed: seed).text.unicodeScalars)
    let place = Int.random(in: 0...scalars.count, using: &random)
    var text = String(String.UnicodeScalarView(scalars[..<place]))
    let length = text.utf8.count
    text += junk[Int.random(in: 0..<junk.count, using: &random)]
    text.unicodeScalars.append(contentsOf: scalars[place...])
    return (text, text.utf8.index(text.startIndex, offsetBy: length))
  }

  @Test("random JSON5 documents are read as the JSON with the same values")
  func valid() throws {
    for seed in 1...UInt64(TestDepth.randomDocuments) {
      let document = RandomJSON5(seed: seed)
      let json = try JSONReader.json(fromJSON5: Data(document.text.utf8))
      #expect(String(decoding: json, as: UTF8.self) == document.json, "seed \(seed): \(document.text)")
      #expect(throws: Never.self, "seed \(seed)") { try JSONReader.check(json) }
    }
  }

  @Test("with one character too many the error is there or after it, and never beyond the end")
  func inserted() throws {
    var errors = 0
    for seed in 1...UInt64(TestDepth.randomDocuments) {
      let (text, index) = altered(seed, by: Self.junk + Self.foreign)
      guard let found = try error(in: text) else { continue }
      errors += 1
      #expect(found >= position(of: index, in: text), "seed \(seed): \(text)")
      #expect(found <= position(of: text.endIndex, in: text), "seed \(seed): \(text)")
    }
    #expect(errors > TestDepth.randomDocuments / 3)
  }

  @Test("what is before an error is valid or only misses its end, and what is after it doesn't matter")
  func prefix() throws {
    for seed in 1...UInt64(TestDepth.randomDocuments) {
      let (text, _) = altered(seed, by: Self.junk)
      guard let found = try error(in: text) else { continue }
      // Columns count characters, so the last index with this position is the beginning of one.
      let indices = Array(text.unicodeScalars.indices) + [text.endIndex]
      let index = try #require(indices.last { position(of: $0, in: text) == found }, "seed \(seed): \(text)")
      if let before = try error(in: text[..<index]) {
        #expect(before == found, "seed \(seed): \(text)")
      }
      // The second half of a surrogate pair, alone, is reported where it begins.
      guard index < text.endIndex, !text[index...].utf8.starts(with: "\\ude00".utf8) else { continue }
      let next = text.unicodeScalars.index(after: index)
      #expect(try error(in: text[..<next]) == found, "seed \(seed): \(text)")
    }
  }

  @Test("a document that is cut off is valid, or has its error at the end")
  func cut() throws {
    for seed in 1...UInt64(TestDepth.randomDocuments / 10) {
      let text = RandomJSON5(seed: seed).text
      for index in text.unicodeScalars.indices {
        let part = String(text.unicodeScalars[..<index])
        guard let found = try error(in: part) else { continue }
        #expect(found == position(of: part.endIndex, in: part), "seed \(seed): \(part)")
      }
    }
  }
}
