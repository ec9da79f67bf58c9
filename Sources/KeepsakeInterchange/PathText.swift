/// Where a value stands, as people write it: `quests[3].reward`.
enum PathText {
  enum Part {
    case key(String)
    case index(Int)
  }

  /// How much of a path is shown: the end of it tells the most.
  private static let longest = 12

  /// A key that isn't a plain word stands in brackets and quotes.
  static func text(_ parts: [Part]) -> String {
    let shown = parts.suffix(longest)
    return shown.reduce(into: shown.count < parts.count ? "..." : "") { path, part in
      switch part {
      case .index(let index): path += "[\(index)]"
      case .key(let key):
        let isWord =
          !key.isEmpty
          && key.utf8.allSatisfy { $0 == 0x5F || $0 == 0x24 || (0x30...0x39).contains($0) || ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A) }
        path += isWord ? (path.isEmpty ? "" : ".") + key : "[\"\(key.prefix(80))\"]"
      }
    }
  }
}
