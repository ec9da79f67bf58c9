#if Cloud
import Foundation
import KeepsakeMirror
import KeepsakePlatform
/// A folder, and the part of it that is mirrored for a game: one or several places of saves.
struct SaveArea: Hashable, Sendable {
  /// The absolute path.
  var folder: String
  var selection: MirrorSelection

  /// Returns the fewest areas that contain all places, no file in two of them.
  ///
  /// The folder of an area is the one in which a place is: whether a save is a file or a folder need not be known, and
  /// a folder of saves that is gone differs from one whose saves were deleted.
  ///
  /// - Throws: `CommandFailure` for a place that is a whole home or disk.
  static func areas(of places: [SavePlace]) throws -> [SaveArea] {
    var areas: [Draft] = []
    for place in places.sorted(by: { fixed($0) < fixed($1) }) {
      let whole = place.anchor.folder.map { NamePattern.literal($0) } + place.components
      guard !place.components.isEmpty || place.anchor.name == "base" else {
        throw CommandFailure(
          .data, "\(place.anchor.path) as a whole can't be the folder of a game's saves", next: "name a folder in it")
      }
      if let index = areas.firstIndex(where: { $0.isRelated(to: whole) }) {
        areas[index].add(whole)
      } else {
        areas.append(Draft(place))
      }
    }
    return areas.map { $0.area() }
  }

  /// How many components are names, of those before the last.
  private static func fixed(_ place: SavePlace) -> Int {
    place.anchor.folder.count + Draft.fixed(place.components)
  }

  private struct Draft {
    var folder: [String]
    var prefix: [String]
    var isDrive: Bool
    var patterns: [[NamePattern]]

    static func fixed(_ components: [NamePattern]) -> Int {
      min(components.prefix { $0.literalName != nil }.count, max(components.count - 1, 0))
    }

    init(_ place: SavePlace) {
      let fixed = Self.fixed(place.components)
      let names = place.components.prefix(fixed).compactMap(\.literalName)
      folder = place.anchor.folder + names
      prefix = [place.anchor.name] + names
      isDrive = place.anchor.path != "/" + place.anchor.folder.joined(separator: "/")
      let rest = Array(place.components.dropFirst(fixed))
      patterns = [rest.isEmpty ? [.anyDepth] : rest]
    }

    /// Whether the place is in this folder, and may have files of this area in it or be among them.
    func isRelated(to whole: [NamePattern]) -> Bool {
      guard let (names, rest) = relative(whole) else { return false }
      // In the same folder, or below one that a wildcard leads to.
      return Self.fixed(rest) == 0 || selection.leads(names.isEmpty ? [] : Array(names.prefix(Self.fixed(rest))))
    }

    mutating func add(_ whole: [NamePattern]) {
      guard let (names, rest) = relative(whole) else { return }
      if !names.isEmpty, selection.takes(names) { return }
      patterns.append(rest.isEmpty ? [.anyDepth] : rest)
    }

    private func relative(_ whole: [NamePattern]) -> (names: [String], rest: [NamePattern])? {
      guard whole.count >= folder.count, whole.prefix(folder.count).map(\.literalName) == folder.map(Optional.init)
      else { return nil }
      let rest = Array(whole.dropFirst(folder.count))
      return (rest.prefix { $0.literalName != nil }.compactMap(\.literalName), rest)
    }

    var selection: MirrorSelection {
      MirrorSelection(prefix: prefix.map { $0 + "/" }.joined(), patterns: patterns)
    }

    func area() -> SaveArea {
      let path = (isDrive ? "" : "/") + folder.joined(separator: "/")
      // A link that the player named, or made of what the game has, leads to the saves. Those inside are not followed.
      if patterns.count == 1, patterns[0].count == 1, let name = patterns[0][0].literalName,
        SaveArea.isLinkToFolder(path + "/" + name)
      {
        let prefix = (prefix + [name]).map { $0 + "/" }.joined()
        return SaveArea(
          folder: path + "/" + name, selection: MirrorSelection(prefix: prefix, patterns: [[.anyDepth]]))
      }
      return SaveArea(folder: path, selection: selection)
    }
  }

  private static func isLinkToFolder(_ path: String) -> Bool {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK else { return false }
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }
}
#endif
