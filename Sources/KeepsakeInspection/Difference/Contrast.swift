import Foundation
import KeepsakeArchive

/// Texts that show the difference between two values whose lines look the same, because they are truncated before the
/// first difference, or rounded.
enum Contrast {
  /// The number of characters shown before the first difference, and from there on.
  private static let before = 10
  private static let after = 40
  private static let bytes = 16

  /// Returns nil for values that are the same or look different anyway.
  static func texts(_ old: ArchiveValue, _ new: ArchiveValue) -> (old: String, new: String)? {
    switch (old, new) {
    case (.string(let a), .string(let b)), (.url(let a), .url(let b)):
      texts(Array(a.unicodeScalars), Array(b.unicodeScalars))
    case (.data(let a), .data(let b)):
      firstDifference(a, b).map { (excerpt(of: a, at: $0), excerpt(of: b, at: $0)) }
    case (.date(let a), .date(let b)):
      ("\(a.timeIntervalSinceReferenceDate) s", "\(b.timeIntervalSinceReferenceDate) s")
    default: nil
    }
  }

  private static func firstDifference<Elements: Collection>(_ a: Elements, _ b: Elements) -> Int?
  where Elements.Element: Equatable {
    if let place = zip(a, b).enumerated().first(where: { $1.0 != $1.1 })?.offset { return place }
    return a.count == b.count ? nil : min(a.count, b.count)
  }

  private static func texts(_ a: [Unicode.Scalar], _ b: [Unicode.Scalar]) -> (String, String)? {
    guard let place = firstDifference(a, b) else { return nil }
    func excerpt(_ scalars: [Unicode.Scalar]) -> String {
      let start = max(0, place - before)
      var view = String.UnicodeScalarView()
      view.append(contentsOf: scalars[min(start, scalars.count)..<min(place + after, scalars.count)])
      let rest = place + after < scalars.count ? "..." : ""
      return (start > 0 ? "..." : "") + PrintableText.quoted(String(view), longest: before + after) + rest
    }
    let (old, new) = (excerpt(a), excerpt(b))
    // The texts are canonically equivalent, so that they look the same even here.
    guard old == new else { return (old, new) }
    func scalar(_ scalars: [Unicode.Scalar]) -> String {
      scalars.indices.contains(place)
        ? " with U+" + String(scalars[place].value, radix: 16, uppercase: true) : " without it"
    }
    return (old + scalar(a), new + scalar(b))
  }

  private static func excerpt(of data: Data, at place: Int) -> String {
    let hex = data.dropFirst(place).prefix(bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    return "\(PrintableText.count(data.count, "byte")), from byte \(place) on \(hex.isEmpty ? "none" : hex)"
  }
}
