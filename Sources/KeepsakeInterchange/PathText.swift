/// A value's path as text, such as `quests[3].reward`.
enum PathText {
  enum Part {
    case key(String)
    case index(Int)
  }

  /// The number of parts that are shown. The last ones are the most useful.
  private static let longest = 12

  /// Returns the text of a path. A key that isn't a plain word is written in brackets and quotes.
  static func text(_ parts: [Part]) -> String {
    let shown = parts.suffix(longest)
    return shown.reduce(into: shown.count < parts.count ? "..." : "") { path, part in
      switch part {
      case .index(let index): path += "[\(index)]"
      case .key(let key):
        let isWord =
          !key.isEmpty
          && key.utf8.allSatisfy {
            $0 == 0x5F || $0 == 0x24 || (0x30...0x39).contains($0) || ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A)
          }
        path += isWord ? (path.isEmpty ? "" : ".") + key : "[\"\(key.prefix(80))\"]"
      }
    }
  }
}
