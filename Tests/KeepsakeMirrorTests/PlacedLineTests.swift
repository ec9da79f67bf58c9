import Foundation
import KeepsakeReplication
import Testing

@testable import KeepsakeMirror

/// Lines of the table of what is placed, written and read without an encoder: the same as with one.
@Suite struct PlacedLineTests {
  private static let encoder: JSONEncoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }()

  private static func line(_ path: String, _ number: UInt64, signature: FileSignature?, isGone: Bool) -> PlacedLine {
    PlacedLine(
      path: path,
      entry: PlacedEntry(
        version: VersionID(high: number, low: 1), shown: [VersionID(high: number, low: 1), VersionID(high: 2, low: 2)],
        hash: isGone ? nil : ContentHash(of: Data("\(number)".utf8)), signature: signature,
        before: number.isMultiple(of: 2) ? [] : [VersionID(high: 3, low: number)]))
  }

  private static let signatures: [FileSignature?] = [
    nil,
    FileSignature(
      size: 0, modifiedNanoseconds: 1_900_000_000_123_456_789, changedNanoseconds: .max, inode: 12, device: 34),
    FileSignature(
      size: 1 << 40, modifiedNanoseconds: -5, changedNanoseconds: .min, inode: .max, device: UInt64(Int64.max)),
  ]

  @Test("lines have the bytes that an encoder gives, and are read without one, but for what JSON escapes")
  func same() throws {
    for path in ["a.sav", "dir/é😀", "it's", "a\"b", "back\\slash", ""] {
      for (number, signature) in Self.signatures.enumerated() {
        for isGone in [false, true] {
          let line = Self.line(path, UInt64(number), signature: signature, isGone: isGone)
          let json = try line.json(Self.encoder)
          #expect(try json == Self.encoder.encode(line), "\(path)")
          #expect(try PlacedLine(json, JSONDecoder()) == line, "\(path)")
          let isPlain = !path.contains("\"") && !path.contains("\\")
          #expect((line.plain != nil) == isPlain)
          // Numbers that have no room are left to a decoder.
          if number < 2 || !isPlain { #expect(PlacedLine(plain: json) == (isPlain ? line : nil)) }
        }
      }
    }
  }

  @Test("an altered line is read as a decoder reads it, or not at all")
  func altered() throws {
    let json = try #require(Self.line("a.sav", 1, signature: Self.signatures[1], isGone: false).plain)
    var readAltered = 0
    for index in json.indices {
      for byte in Array("\"\\{}[],:-0a\u{0}".utf8) + [0xFF] {
        var bytes = json
        bytes[index] = byte
        guard let read = PlacedLine(plain: bytes) else { continue }
        readAltered += 1
        try #require(try read == JSONDecoder().decode(PlacedLine.self, from: bytes))
      }
      #expect(PlacedLine(plain: json.prefix(index)) == nil)
    }
    #expect(readAltered > 50)
  }
}
