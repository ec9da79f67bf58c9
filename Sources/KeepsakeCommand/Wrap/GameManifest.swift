#if Cloud
import Foundation
import Yams

/// What a manifest says about one game: the format that players' backup tools share (Ludusavi's), in YAML or JSON.
///
/// The whole manifest has tens of thousands of games and more than ten megabytes. Only the part of the game is parsed:
/// its key, at the beginning of a line, and what is indented below it.
struct GameManifest: Sendable {
  /// A path of the section `files`.
  struct Entry: Hashable, Sendable {
    struct Condition: Hashable, Sendable {
      var system: String?
      var store: String?
    }
    var path: String
    /// It applies if one of these does, or if there are none.
    var conditions: [Condition] = []
    var tags: [String] = []

    /// Whether it is there for settings alone, which a player has different ones of on each device.
    var isOnlySettings: Bool { tags == ["config"] }
  }

  var entries: [Entry] = []
  /// The names of folders in which the game may be installed, in order.
  var folders: [String] = []
  var steamID: String?
  private var alias: String?

  /// Larger than any manifest so far by an order of magnitude.
  static let maximumBytes = 256 << 20
  /// What one game may take, and a manifest that isn't in lines (JSON).
  static let maximumParsedBytes = 8 << 20
  /// How deep values may be nested: more than the format has, and far less than what a parser's stack bears.
  static let maximumDepth = 64
  private static let maximumAliases = 8

  /// Finds a game in the bytes of a manifest, following aliases.
  ///
  /// - Throws: `GameManifestError`.
  static func find(_ game: String, in bytes: Data) throws(GameManifestError) -> GameManifest {
    var name = game
    for _ in 0...maximumAliases {
      let found = try GameManifest(name, in: bytes)
      guard let alias = found.alias else { return found }
      name = alias
    }
    throw GameManifestError(.form, "its aliases lead on and on", at: game)
  }

  private init(_ game: String, in bytes: Data) throws(GameManifestError) {
    guard bytes.count <= Self.maximumBytes else {
      throw GameManifestError(.tooLarge, "a manifest has at most \(Self.maximumBytes >> 20) MiB")
    }
    let part = try ManifestText.part(of: game, in: bytes)
    guard part.count <= Self.maximumParsedBytes else {
      throw GameManifestError(
        .tooLarge, "at most \(Self.maximumParsedBytes >> 20) MiB are read of one game, or of a manifest in JSON",
        at: game)
    }
    guard let text = String(validating: part, as: UTF8.self) else {
      throw GameManifestError(.form, "it isn't UTF-8", at: game)
    }
    guard ManifestText.depth(of: text) <= Self.maximumDepth else {
      throw GameManifestError(.form, "it is nested more deeply than any manifest", at: game)
    }
    let root: Node?
    do {
      root = try Yams.compose(yaml: text)
    } catch {
      throw GameManifestError(.form, "it isn't YAML: \(String("\(error)".prefix(300)))", at: game)
    }
    guard let node = root?.mapping?.first(where: { $0.key.string == game })?.value else {
      throw ManifestText.unknown(game, in: bytes)
    }
    try read(Reader(node, at: game))
  }

  private mutating func read(_ game: Reader) throws(GameManifestError) {
    alias = try game["alias"]?.text()
    for (path, entry) in try game["files"]?.fields() ?? [] {
      var read = Entry(path: path)
      if !entry.isEmpty {
        for condition in try entry["when"]?.items() ?? [] {
          read.conditions.append(
            Entry.Condition(system: try condition["os"]?.text(), store: try condition["store"]?.text()))
        }
        for tag in try entry["tags"]?.items() ?? [] { read.tags.append(try tag.text()) }
      }
      entries.append(read)
    }
    folders = try game["installDir"]?.fields().map(\.name) ?? []
    steamID = try game["steam"]?["id"]?.text()
  }

  /// Returns the places of the game's saves on this device. Entries for other systems and stores are left out; without
  /// a known store, those for any store apply.
  ///
  /// - Throws: `GameManifestError` for a path that no manifest may have.
  func places(in places: SavePlaces, store: String?) throws(GameManifestError) -> [SavePlace] {
    var found: [SavePlace] = []
    for entry in entries where !entry.isOnlySettings {
      let conditions = entry.conditions.isEmpty ? [Entry.Condition()] : entry.conditions
      for condition in conditions where condition.store == nil || store == nil || condition.store == store {
        if let system = condition.system {
          // A system that later manifests may have is none of ours.
          guard let platform = GamePlatform(rawValue: system) else { continue }
          found += try places.places(of: entry.path, for: platform)
        } else {
          found += try places.places(of: entry.path)
        }
      }
    }
    var seen: Set<SavePlace> = []
    return found.filter { seen.insert($0).inserted }
  }

  /// A value of the manifest, with its place for messages.
  private struct Reader {
    let node: Node
    let place: String

    init(_ node: Node, at place: String) {
      self.node = node
      self.place = place
    }

    /// Whether it is an empty mapping, or none.
    var isEmpty: Bool { node.null != nil || node.mapping?.isEmpty == true }

    subscript(key: String) -> Reader? {
      get throws(GameManifestError) {
        guard let value = try mapping()[key], value.null == nil || value.string?.isEmpty == false else { return nil }
        return Reader(value, at: "\(place): \(key)")
      }
    }

    func fields() throws(GameManifestError) -> [(name: String, value: Reader)] {
      var fields: [(String, Reader)] = []
      for (key, value) in try mapping() {
        guard let name = key.string else { throw GameManifestError(.form, "a key isn't text", at: place) }
        fields.append((name, Reader(value, at: "\(place): \(name)")))
      }
      return fields
    }

    func items() throws(GameManifestError) -> [Reader] {
      guard let sequence = node.sequence else { throw GameManifestError(.form, "a list is expected", at: place) }
      return sequence.map { Reader($0, at: place) }
    }

    func text() throws(GameManifestError) -> String {
      guard let text = node.scalar?.string else { throw GameManifestError(.form, "text is expected", at: place) }
      return text
    }

    private func mapping() throws(GameManifestError) -> Node.Mapping {
      guard let mapping = node.mapping else {
        throw GameManifestError(.form, "a mapping is expected", at: place)
      }
      return mapping
    }
  }
}
#endif
