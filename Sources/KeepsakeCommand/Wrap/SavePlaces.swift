#if Cloud
import Foundation
import KeepsakeMirror
import KeepsakePlatform

/// The operating system that a game is for. The names are those of manifests.
enum GamePlatform: String, Sendable {
  case linux, mac, windows

  static var current: GamePlatform {
    let system = HostSystem.current
    return system == .windows ? .windows : system.isApple ? .mac : .linux
  }
}

/// A place of saves on this device: a path below a folder that every device has, with wildcards in it.
struct SavePlace: Hashable, Sendable {
  var anchor: PathAnchor
  /// Below the anchor's folder. Empty for the folder itself.
  var components: [NamePattern]

  /// Whether a component has a name that is Keepsake's own: nothing under it is ever mirrored.
  var hasReservedName: Bool {
    components.compactMap(\.literalName).contains {
      let name = $0.lowercased()
      return name == SavePath.reservedName || name.hasPrefix(SavePath.reservedName + "-")
    }
  }
}

/// A folder that devices have at different paths, such as the user's home. Its name begins the names of slots, so that
/// the saves of two devices meet.
struct PathAnchor: Hashable, Sendable {
  var name: String
  /// The components of the absolute path.
  var folder: [String]

  var path: String {
    folder.first?.hasSuffix(":") == true ? folder.joined(separator: "/") : "/" + folder.joined(separator: "/")
  }
}

/// Finds the places that a path with tokens, such as `<home>/.local/share/Game/*.sav`, means on this device.
///
/// The tokens are those of the manifests that players' backup tools share. Nothing is read from the disk.
struct SavePlaces: Sendable {
  /// What the tokens mean for games of one system. On Linux a second one, of Windows, is inside the prefix of Wine or
  /// Proton, if there is one.
  struct System: Sendable {
    var platform: GamePlatform
    /// Each token that is the beginning of a path, with its folder.
    var tokens: [String: [String]]
    /// The names that slots have for these folders; by default the tokens' own.
    var names: [String: String]
  }

  let systems: [System]
  /// Tokens that are a part of one component.
  let words: [String: String]
  private let anchors: [PathAnchor]

  /// - Parameters:
  ///   - environment: The variables of the environment.
  ///   - base: The folder in which the game is installed, an absolute path; nil if it isn't known.
  ///   - root: The folder of the store in which games are installed; nil if it isn't known.
  ///   - game: The name of the game's folder.
  ///   - winePrefix: The folder that contains `drive_c`, for a game of Windows on another system.
  init(
    platform: GamePlatform, environment: [String: String], home: String, user: String, base: String? = nil,
    root: String? = nil, game: String? = nil, storeGameID: String? = nil, winePrefix: String? = nil
  ) {
    func parts(_ path: String) -> [String] { Self.parts(path) }
    var common: [String: [String]] = [:]
    if let base { common["base"] = parts(base) }
    if let root { common["root"] = parts(root) }
    var systems: [System] = []
    let home = parts(home)
    switch platform {
    case .linux:
      let tokens = [
        "home": home,
        "xdgData": environment.folder("XDG_DATA_HOME").map(parts) ?? home + [".local", "share"],
        "xdgConfig": environment.folder("XDG_CONFIG_HOME").map(parts) ?? home + [".config"],
      ]
      systems.append(System(platform: .linux, tokens: tokens.merging(common) { $1 }, names: [:]))
    case .mac:
      systems.append(System(platform: .mac, tokens: ["home": home].merging(common) { $1 }, names: [:]))
    case .windows:
      let drive = environment["SYSTEMDRIVE"] ?? "C:"
      let tokens = [
        "home": home,
        "winAppData": environment.folder("APPDATA").map(parts) ?? home + ["AppData", "Roaming"],
        "winLocalAppData": environment.folder("LOCALAPPDATA").map(parts) ?? home + ["AppData", "Local"],
        "winLocalAppDataLow": home + ["AppData", "LocalLow"],
        "winDocuments": home + ["Documents"],
        "winPublic": environment.folder("PUBLIC").map(parts) ?? [drive, "Users", "Public"],
        "winProgramData": environment.folder("PROGRAMDATA").map(parts) ?? [drive, "ProgramData"],
        "winDir": environment.folder("WINDIR").map(parts) ?? [drive, "Windows"],
      ]
      systems.append(System(platform: .windows, tokens: tokens.merging(common) { $1 }, names: ["home": "winHome"]))
    }
    if let winePrefix, platform != .windows {
      // Proton has one user in each prefix.
      let drive = parts(winePrefix) + ["drive_c"]
      let home = drive + ["users", environment["STEAM_COMPAT_DATA_PATH"] == nil ? user : "steamuser"]
      let tokens = [
        "home": home, "winAppData": home + ["AppData", "Roaming"], "winLocalAppData": home + ["AppData", "Local"],
        "winLocalAppDataLow": home + ["AppData", "LocalLow"], "winDocuments": home + ["Documents"],
        "winPublic": drive + ["users", "Public"], "winProgramData": drive + ["ProgramData"],
        "winDir": drive + ["windows"],
      ]
      systems.append(System(platform: .windows, tokens: tokens.merging(common) { $1 }, names: ["home": "winHome"]))
    }
    self.systems = systems
    words = [
      "osUserName": user, "storeUserId": "*", "storeGameId": storeGameID ?? "*", "game": game ?? "*",
    ]
    var anchors: Set<PathAnchor> = []
    for system in systems {
      for (token, folder) in system.tokens where !folder.isEmpty {
        anchors.insert(PathAnchor(name: system.names[token] ?? token, folder: folder))
      }
    }
    // Of the same folder under two names every device takes the same one.
    self.anchors = anchors.sorted { ($0.folder.count, $1.name) > ($1.folder.count, $0.name) }
  }

  /// Returns the places that `text` means: at most one for each system. None if a token isn't known here.
  ///
  /// - Throws: `GameManifestError` for a token that doesn't exist, and for a path that isn't absolute or leads upwards
  ///   out of something that isn't known.
  func places(of text: String, for platform: GamePlatform? = nil) throws(GameManifestError) -> [SavePlace] {
    var found: [SavePlace] = []
    for system in systems where platform == nil || system.platform == platform {
      guard let place = try place(of: text, in: system), !found.contains(place) else { continue }
      found.append(place)
    }
    return found
  }

  /// Returns the place of a path as it is, in which nothing is a wildcard or a token.
  func place(literally path: String) -> SavePlace { anchored(Self.parts(path).map { .literal($0) }) }

  private static let tokenNames: Set<String> = [
    "root", "game", "base", "home", "storeGameId", "storeUserId", "osUserName", "winAppData", "winLocalAppData",
    "winLocalAppDataLow", "winDocuments", "winPublic", "winProgramData", "winDir", "xdgData", "xdgConfig",
  ]

  private func place(of text: String, in system: System) throws(GameManifestError) -> SavePlace? {
    var components: [NamePattern] = []
    var isFirst = true
    var known = false
    for part in text.split(whereSeparator: { $0 == "/" || $0 == "\\" }).map(String.init) {
      defer { isFirst = false }
      if isFirst, part.hasPrefix("<"), part.hasSuffix(">") {
        let token = String(part.dropFirst().dropLast())
        guard Self.tokenNames.contains(token) else {
          throw GameManifestError(.token, "the token <\(token)> is unknown", at: text)
        }
        guard words[token] == nil else { throw GameManifestError(.path, "the path isn't absolute", at: text) }
        guard let folder = system.tokens[token] else { return nil }
        components = folder.map { .literal($0) }
        known = true
        continue
      }
      if isFirst, text.hasPrefix("/") || part.hasSuffix(":") { known = true }
      guard known else { throw GameManifestError(.path, "the path isn't absolute", at: text) }
      switch part {
      case ".": continue
      case "..":
        guard components.popLast()?.literalName != nil else {
          throw GameManifestError(.path, "\"..\" leads out of what is known", at: text)
        }
      default: components.append(NamePattern(try filled(part, of: text)))
      }
    }
    return anchored(components)
  }

  /// Replaces the tokens in a component.
  private func filled(_ part: String, of text: String) throws(GameManifestError) -> String {
    var result = ""
    var rest = part[...]
    while let open = rest.firstIndex(of: "<"), let close = rest[open...].firstIndex(of: ">") {
      let token = String(rest[rest.index(after: open)..<close])
      guard let word = words[token] else {
        throw GameManifestError(.token, "the token <\(token)> can't be here, or is unknown", at: text)
      }
      result += rest[..<open] + word
      rest = rest[rest.index(after: close)...]
    }
    return result + rest
  }

  /// Expresses an absolute path by the nearest of the folders that every device has.
  private func anchored(_ components: [NamePattern]) -> SavePlace {
    let names = components.prefix { $0.literalName != nil }.compactMap(\.literalName)
    if let anchor = anchors.first(where: { names.starts(with: $0.folder) }) {
      return SavePlace(anchor: anchor, components: Array(components.dropFirst(anchor.folder.count)))
    }
    if let drive = names.first, drive.hasSuffix(":") {
      return SavePlace(
        anchor: PathAnchor(name: "disk" + drive.dropLast(), folder: [drive]), components: Array(components.dropFirst()))
    }
    return SavePlace(anchor: PathAnchor(name: "disk", folder: []), components: components)
  }

  static func parts(_ path: String) -> [String] {
    path.split(whereSeparator: { $0 == "/" || $0 == "\\" }).map(String.init)
  }
}

extension [String: String] {
  /// Returns a folder that a variable of the environment names; relative ones don't count.
  func folder(_ name: String) -> String? {
    self[name].flatMap { $0.hasPrefix("/") || $0.dropFirst().hasPrefix(":") ? $0 : nil }
  }
}
#endif
