import Foundation

/// Where games keep their data on each platform.
enum DataFolder {
  /// The folder of one game and one profile, whether it exists or not.
  static func url(id: String, profile: String) throws -> URL {
    try check(profile, "a profile's name")
    return try url(id: id).appendingPathComponent(profile, isDirectory: true)
  }

  /// The folder of one game, in which each profile has its own.
  static func url(id: String) throws -> URL {
    try check(id, "a game's identifier")
    return try base().appendingPathComponent(id, isDirectory: true)
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

  private static func base() throws -> URL {
    #if os(Windows)
    guard let folder = ProcessInfo.processInfo.environment["LOCALAPPDATA"], !folder.isEmpty else {
      throw GameDataError(.misuse, "LOCALAPPDATA is not set: say where the data goes with `at:`")
    }
    return URL(fileURLWithPath: folder, isDirectory: true)
    #elseif canImport(Darwin)
    let folders = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
    guard let folder = folders.first else {
      throw GameDataError(.misuse, "there is no Application Support folder: say where the data goes with `at:`")
    }
    return folder
    #else
    return try xdg(ProcessInfo.processInfo.environment)
    #endif
  }

  /// The XDG base directory specification: `XDG_DATA_HOME` where it is an absolute path, else `~/.local/share`.
  static func xdg(_ environment: [String: String]) throws -> URL {
    if let folder = environment["XDG_DATA_HOME"], folder.hasPrefix("/") {
      return URL(fileURLWithPath: folder, isDirectory: true)
    }
    guard let home = environment["HOME"], home.hasPrefix("/") else {
      throw GameDataError(.misuse, "neither XDG_DATA_HOME nor HOME is set: say where the data goes with `at:`")
    }
    return URL(fileURLWithPath: home, isDirectory: true).appendingPathComponent(".local/share", isDirectory: true)
  }
}
