#if Cloud
import Foundation

/// Codes that people read from one screen and type on another.
enum ReadableCode {
  /// Without 0 and O, and without 1, I and L: 31 characters that aren't mistaken for one another.
  static let alphabet = Array("23456789ABCDEFGHJKMNPQRSTUVWXYZ".utf8)
  static let pairingLength = 8

  static func make(length: Int, using source: inout some RandomNumberGenerator) -> String {
    String(
      decoding: (0..<length).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &source)] }, as: UTF8.self)
  }

  /// Returns the code as it was generated, from what a person typed: lowercase letters, spaces and hyphens are
  /// accepted. Nil if it can't be one.
  static func normalize(_ text: String) -> String? {
    guard text.utf8.count <= 4 * pairingLength else { return nil }
    let typed = text.uppercased().utf8.filter { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "-") }
    guard typed.count == pairingLength, typed.allSatisfy(alphabet.contains) else { return nil }
    return String(decoding: typed, as: UTF8.self)
  }
}
#endif
