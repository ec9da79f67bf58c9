public import Foundation
import KeepsakePlatform
import KeepsakeReplication
import KeepsakeStore

/// The folders for a game's files on each platform, and whether the platform's backups include them.
///
/// ```swift
/// let folders = try StorageFolders("com.example.space")
/// let screenshots = try folders.folder(for: .data).appendingPathComponent("Screenshots")
/// ```
///
/// | | Linux | Apple | Windows | in backups |
/// |---|---|---|---|---|
/// | `data` | `$XDG_DATA_HOME` or `~/.local/share` | Application Support | `%LOCALAPPDATA%` | yes |
/// | `settings` | `$XDG_CONFIG_HOME` or `~/.config` | Application Support | `%LOCALAPPDATA%` | yes |
/// | `state` | `$XDG_STATE_HOME` or `~/.local/state` | Application Support | `%LOCALAPPDATA%` | no, if possible |
/// | `cache` | `$XDG_CACHE_HOME` or `~/.cache` | Caches | `%LOCALAPPDATA%` | no |
///
/// Each contains a folder for the game. `GameData.open` keeps everything in `data`, in a folder for each profile. "In
/// backups" means iCloud and Finder on Apple's systems; on Linux and Windows it is only a convention, and the player's
/// backup software decides.
///
/// A device that was set up from a backup, or a copied folder, has a store that another device may still use. That is
/// safe: each opening writes under a new identifier, so nothing counts twice, and the bank decides about money. The
/// store starts with the state of the backup; the first exchange with the cloud fetches the rest.
public struct StorageFolders: Sendable, Hashable {
  /// The purpose of a file.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Data that the player would miss.
    case data
    /// Choices that the player can make again.
    case settings
    /// Data for this device only: logs, window positions, recently opened files.
    case state
    /// Data that can be recreated or downloaded again. The system may delete it.
    case cache

    /// Whether the platform's backups should include it.
    public var isBackedUp: Bool { self == .data || self == .settings }
  }

  /// The game's identifier.
  public let id: String
  private let override: URL?

  /// Describes the folders of a game. Doesn't create any folder.
  ///
  /// - Parameters:
  ///   - id: The game's identifier, as for `GameData.open`.
  ///   - url: A folder in which `data`, `settings`, `state` and `cache` are subfolders, instead of the platform's
  ///     folders: for a portable installation or a test.
  /// - Throws: `GameDataError` with `misuse` for an identifier that isn't a valid folder name on every platform.
  public init(_ id: String, under url: URL? = nil) throws {
    try Self.check(id, "a game's identifier")
    self.id = id
    override = url
  }

  /// Returns the location of a folder, whether it exists or not.
  ///
  /// - Parameter kind: What the files are for.
  /// - Returns: The folder's location.
  /// - Throws: `GameDataError` with `misuse` if the system doesn't define a folder for such files.
  public func url(for kind: Kind) throws -> URL {
    if let override { return override.appendingPathComponent(kind.rawValue, isDirectory: true) }
    return try url(for: kind, on: .current, ProcessInfo.processInfo.environment)
  }

  func url(for kind: Kind, on system: HostSystem, _ environment: [String: String]) throws -> URL {
    let folder = try Self.base(of: kind, on: system, environment).appendingPathComponent(id, isDirectory: true)
    // Where several kinds share a folder, each kind except `data` has a subfolder of its own in it.
    guard system.isApple || system == .windows, kind != .data else { return folder }
    return folder.appendingPathComponent(".\(kind.rawValue)", isDirectory: true)
  }

  /// Returns a folder, and creates it if needed: readable only for this user, and excluded from backups if the kind
  /// requires it and the platform supports it.
  ///
  /// - Parameter kind: What the files are for.
  /// - Returns: The folder's location.
  /// - Throws: `StoreError` if it can't be created, such as `diskFull`, `notPermitted`, or `misuse` if a file is in its
  ///   place; otherwise as `url(for:)`.
  public func folder(for kind: Kind) throws -> URL {
    let url = try url(for: kind)
    try StoreFolder.create(url, isPrivate: true)
    do {
      if !kind.isBackedUp { try Self.excludeFromBackups(url) }
    } catch {
      throw StoreError(.io, "the folder \(url.path) can't be excluded from backups", cause: error)
    }
    return url
  }

  /// Asks the platform's backups to skip a file or folder: iCloud and Finder on Apple's systems. Does nothing
  /// elsewhere.
  ///
  /// - Parameter url: The file or folder.
  /// - Throws: The system's error.
  public static func excludeFromBackups(_ url: URL) throws { try SystemCall.excludeFromBackups(url) }

  // MARK: Games and profiles

  /// Returns the folder of one profile's data.
  func profile(_ name: String) throws -> URL {
    try Self.check(name, "a profile's name")
    return try url(for: .data).appendingPathComponent(name, isDirectory: true)
  }

  /// Whether a name is a valid folder name on every platform.
  static func isName(_ name: String) -> Bool { objection(to: name, "a name") == nil }

  /// Throws `misuse` if a name isn't a valid folder name on every platform.
  static func check(_ name: String, _ what: String) throws {
    if let objection = objection(to: name, what) { throw GameDataError(.misuse, objection) }
  }

  private static func objection(to name: String, _ what: String) -> String? {
    // A limit of 200 leaves room for suffixes within the 255 bytes that file systems allow.
    if let objection = NameRule(what, maximumBytes: 200).objection(to: name) { return objection }
    let isValid =
      !WindowsName.isDevice(name) && !name.hasPrefix(".") && !name.hasSuffix(".") && !name.hasSuffix(" ")
      && !name.unicodeScalars.contains(where: WindowsName.reservedCharacters.contains)
    return isValid
      ? nil
      : """
      \(what) must be a valid folder name on every platform, without / \\ : * ? " < > |, without a dot at either end \
      or a space at the end, and not the name of a device such as con: \(NameRule.shown(name)) isn't
      """
  }

  // MARK: Platforms

  /// Returns the folder that contains a folder for each game.
  private static func base(of kind: Kind, on system: HostSystem, _ environment: [String: String]) throws -> URL {
    if system == .windows {
      guard let folder = environment["LOCALAPPDATA"], !folder.isEmpty else {
        throw GameDataError(.misuse, "LOCALAPPDATA is not set: specify where the game's files are stored")
      }
      return URL(fileURLWithPath: folder, isDirectory: true)
    }
    guard system.isApple else { return try xdg(kind, environment) }
    let directory: FileManager.SearchPathDirectory = kind == .cache ? .cachesDirectory : .applicationSupportDirectory
    guard let folder = FileManager.default.urls(for: directory, in: .userDomainMask).first else {
      throw GameDataError(.misuse, "the system has no folder for such files: specify where the game's files are stored")
    }
    return folder
  }

  /// Returns the folder of the XDG base directory specification: the variable's value if it is an absolute path,
  /// otherwise the specified default in the user's home folder.
  static func xdg(_ kind: Kind, _ environment: [String: String]) throws -> URL {
    let (variable, path) =
      switch kind {
      case .data: ("XDG_DATA_HOME", ".local/share")
      case .settings: ("XDG_CONFIG_HOME", ".config")
      case .state: ("XDG_STATE_HOME", ".local/state")
      case .cache: ("XDG_CACHE_HOME", ".cache")
      }
    if let folder = environment[variable], folder.hasPrefix("/") {
      return URL(fileURLWithPath: folder, isDirectory: true)
    }
    guard let home = environment["HOME"], home.hasPrefix("/") else {
      throw GameDataError(.misuse, "neither \(variable) nor HOME is set: specify where the game's files are stored")
    }
    return URL(fileURLWithPath: home, isDirectory: true).appendingPathComponent(path, isDirectory: true)
  }
}
