public import Foundation
import KeepsakeStore

/// Where a game keeps its files on each platform, and what the platform's backups carry of them.
///
///     let folders = try StorageFolders("com.example.space")
///     let screenshots = try folders.folder(for: .data).appendingPathComponent("Screenshots")
///
/// | | Linux | Apple | Windows | in backups |
/// |---|---|---|---|---|
/// | `data` | `$XDG_DATA_HOME` or `~/.local/share` | Application Support | `%LOCALAPPDATA%` | yes |
/// | `settings` | `$XDG_CONFIG_HOME` or `~/.config` | Application Support | `%LOCALAPPDATA%` | yes |
/// | `state` | `$XDG_STATE_HOME` or `~/.local/state` | Application Support | `%LOCALAPPDATA%` | no, where it can be said |
/// | `cache` | `$XDG_CACHE_HOME` or `~/.cache` | Caches | `%LOCALAPPDATA%` | no |
///
/// In each is a folder of the game's own. `GameData.open` keeps everything in `data`, a folder for each profile in it. "In backups" is what
/// iCloud and Finder carry on Apple's systems, and what is customary elsewhere: on Linux and Windows the player's own backup decides.
///
/// A device that was set up from a backup, or a folder that was copied, holds a store that another device may still use. That does no
/// harm: each opening writes under a name of its own, so nothing counts twice, and money goes on where the bank says. A backup brings back
/// the state of its day; what the cloud has beyond it comes at the first exchange.
public struct StorageFolders: Sendable, Hashable {
  /// What a file is to the game.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// What the player would miss.
    case data
    /// Choices that can be made again.
    case settings
    /// What only helps this device: logs, window places, what was opened last.
    case state
    /// What can be made or fetched again at any time; the system may delete it.
    case cache

    /// Whether the platform's own backups are asked to carry it.
    public var isBackedUp: Bool { self == .data || self == .settings }
  }

  /// The game's identifier.
  public let id: String
  private let override: URL?

  /// - Parameters:
  ///   - id: The game's identifier, as for `GameData.open`.
  ///   - url: Everything goes into folders `data`, `settings`, `state` and `cache` of this one: for a portable installation, or a test.
  /// - Throws: `GameDataError` with `misuse` for an identifier that can't name a folder on every platform.
  public init(_ id: String, under url: URL? = nil) throws {
    try Self.check(id, "a game's identifier")
    self.id = id
    override = url
  }

  /// The folder, whether it exists or not. Throws `GameDataError` with `misuse` where the system doesn't say where such files go.
  public func url(for kind: Kind) throws -> URL {
    if let override { return override.appendingPathComponent(kind.rawValue, isDirectory: true) }
    let base = try Self.base(of: kind, ProcessInfo.processInfo.environment)
    let folder = base.appendingPathComponent(id, isDirectory: true)
    #if canImport(Darwin) || os(Windows)
    // Where kinds share a folder, each but the data has one of its own in it.
    if kind != .data { return folder.appendingPathComponent(".\(kind.rawValue)", isDirectory: true) }
    #endif
    return folder
  }

  /// The folder, made if it isn't there: for this user only, and marked so that backups pass over it, where the kind says so and the
  /// platform can. Throws `StoreError` if it can't be made.
  public func folder(for kind: Kind) throws -> URL {
    let url = try url(for: kind)
    do {
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      if !kind.isBackedUp { try Self.excludeFromBackups(url) }
    } catch {
      throw StoreError(.notPermitted, "the folder \(url.path) can't be made", cause: error)
    }
    return url
  }

  /// Asks the platform's backups to pass over a file or folder: iCloud and Finder on Apple's systems; elsewhere it does nothing, because there is
  /// nothing to ask. Throws what the system throws.
  public static func excludeFromBackups(_ url: URL) throws {
    #if canImport(Darwin)
    var url = url
    var values = URLResourceValues()
    values.isExcludedFromBackup = true
    try url.setResourceValues(values)
    #endif
  }

  // MARK: Games and profiles

  /// The folder of one profile's data.
  func profile(_ name: String) throws -> URL {
    try Self.check(name, "a profile's name")
    return try url(for: .data).appendingPathComponent(name, isDirectory: true)
  }

  private static let devices: Set<String> = {
    let numbered = (1...9).flatMap { ["com\($0)", "lpt\($0)"] }
    return Set(["con", "prn", "aux", "nul"] + numbered)
  }()

  /// A name that is one ordinary folder on every platform.
  static func isName(_ name: String) -> Bool {
    let allowed = name.unicodeScalars.allSatisfy { scalar in
      scalar.value >= 32 && !"/\\:*?\"<>|".unicodeScalars.contains(scalar) && scalar.value != 127
    }
    // Windows gives these to devices, whatever stands behind a dot.
    guard !devices.contains(name.prefix { $0 != "." }.lowercased()) else { return false }
    // 200 leaves room for what is added to names within the 255 bytes that file systems take.
    return allowed && !name.isEmpty && name.utf8.count <= 200 && !name.hasPrefix(".") && !name.hasSuffix(".") && !name.hasSuffix(" ")
  }

  /// Throws `misuse` for any other name.
  static func check(_ name: String, _ what: String) throws {
    guard isName(name) else {
      throw GameDataError(
        .misuse, "\(what) names a folder, without / \\ : * ? \" < > | and without a dot at its ends; \"\(name.prefix(80))\" can't")
    }
  }

  // MARK: Platforms

  /// The folder in which each game has its own.
  private static func base(of kind: Kind, _ environment: [String: String]) throws -> URL {
    #if os(Windows)
    guard let folder = environment["LOCALAPPDATA"], !folder.isEmpty else {
      throw GameDataError(.misuse, "LOCALAPPDATA is not set: say where the game's files go")
    }
    return URL(fileURLWithPath: folder, isDirectory: true)
    #elseif canImport(Darwin)
    let directory: FileManager.SearchPathDirectory = kind == .cache ? .cachesDirectory : .applicationSupportDirectory
    guard let folder = FileManager.default.urls(for: directory, in: .userDomainMask).first else {
      throw GameDataError(.misuse, "the system has no folder for such files: say where the game's files go")
    }
    return folder
    #else
    return try xdg(kind, environment)
    #endif
  }

  /// The XDG base directory specification: a variable where it is an absolute path, else the folder in the user's own that it names.
  static func xdg(_ kind: Kind, _ environment: [String: String]) throws -> URL {
    let (variable, path) =
      switch kind {
      case .data: ("XDG_DATA_HOME", ".local/share")
      case .settings: ("XDG_CONFIG_HOME", ".config")
      case .state: ("XDG_STATE_HOME", ".local/state")
      case .cache: ("XDG_CACHE_HOME", ".cache")
      }
    if let folder = environment[variable], folder.hasPrefix("/") { return URL(fileURLWithPath: folder, isDirectory: true) }
    guard let home = environment["HOME"], home.hasPrefix("/") else {
      throw GameDataError(.misuse, "neither \(variable) nor HOME is set: say where the game's files go")
    }
    return URL(fileURLWithPath: home, isDirectory: true).appendingPathComponent(path, isDirectory: true)
  }
}
