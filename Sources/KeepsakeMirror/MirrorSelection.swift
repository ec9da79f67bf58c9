import Foundation
import KeepsakeReplication

/// The part of a folder that is mirrored, and what its slots are called.
///
/// Nothing outside of it is read or written, whatever the cloud sends: a save place in a home folder doesn't open the
/// home folder.
package struct MirrorSelection: Hashable, Sendable {
  /// What the paths of the slots have before the path in the folder: empty, or components that each end with a slash.
  package var prefix: String
  /// Paths in the folder; each selects a file, or a folder with everything in it. Empty for the whole folder.
  package var patterns: [[NamePattern]]

  /// Everything in the folder, under its path there.
  package static let everything = MirrorSelection(prefix: "", patterns: [])

  package init(prefix: String, patterns: [[NamePattern]]) {
    self.prefix = prefix
    self.patterns = patterns
  }

  /// The prefix as a path; nil if it is empty.
  var prefixPath: Result<SavePath?, SavePathRefusal> {
    Result { () throws(SavePathRefusal) in prefix.isEmpty ? nil : try SavePath(prefix.dropLast()) }
  }

  var isPart: Bool { !patterns.isEmpty }

  /// Whether a file at this path is selected, or is a copy that was kept beside one (`besideName`).
  package func takes(_ components: [String]) -> Bool {
    guard isPart else { return true }
    if patterns.contains(where: { Self.selects($0, components) }) { return true }
    guard let last = components.last, let original = Self.originalName(ofBeside: last) else { return false }
    let beside = components.dropLast() + [original]
    return patterns.contains { Self.selects($0, Array(beside)) }
  }

  /// Whether a folder at this path may contain selected files.
  package func leads(_ components: [String]) -> Bool {
    guard isPart else { return true }
    return patterns.contains { Self.mayContain($0[...], components[...]) }
  }

  /// Returns the folder whose absence means that a place of saves is gone, and not that the saves in it were deleted:
  /// the part of the path that was named. Nil for a file that was named itself, and if nothing was.
  func namedFolder(of components: [String]) -> [String]? {
    let named =
      patterns.filter { Self.selects($0, components) }
      .map { $0.prefix { $0.literalName != nil }.count }.max() ?? 0
    return named > 0 && named < components.count ? Array(components.prefix(named)) : nil
  }

  /// Whether the pattern matches the path, or a folder on the way to it. However many `**` a manifest has, this takes
  /// at most the product of both lengths.
  private static func selects(_ pattern: [NamePattern], _ path: [String]) -> Bool {
    var (part, place) = (0, 0)
    // Where the last `**` is, and from where on what follows it is looked for: only the last one ever has to take more.
    var deep: (part: Int, place: Int)?
    while part < pattern.count {
      if pattern[part] == .anyDepth {
        part += 1
        deep = (part, place)
      } else if place < path.count, pattern[part].matches(path[place]) {
        part += 1
        place += 1
      } else if let last = deep, last.place < path.count {
        deep = (last.part, last.place + 1)
        (part, place) = (last.part, last.place + 1)
      } else {
        return false
      }
    }
    return true
  }

  private static func mayContain(_ pattern: ArraySlice<NamePattern>, _ folder: ArraySlice<String>) -> Bool {
    guard let first = pattern.first, let name = folder.first else { return true }
    return first == .anyDepth || first.matches(name) && mayContain(pattern.dropFirst(), folder.dropFirst())
  }

  // MARK: Copies beside a save

  private static let mark = ".conflict-"
  private static let digits = 8

  /// Returns a name for the other side of a conflict, beside the save: one that no game takes for the save, and that is
  /// the same on every device for the same bytes.
  static func besideName(_ name: String, of hash: ContentHash) -> String {
    name + mark + hash.description.prefix(digits)
  }

  private static func originalName(ofBeside name: String) -> String? {
    guard let at = name.range(of: mark, options: .backwards) else { return nil }
    let rest = name[at.upperBound...].utf8
    guard rest.count == digits, rest.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }),
      at.lowerBound > name.startIndex
    else { return nil }
    return String(name[..<at.lowerBound])
  }
}
