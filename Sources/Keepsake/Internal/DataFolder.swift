import Foundation

/// Where games keep their data on each platform.
enum DataFolder {
  /// The folder of one game and one profile, whether it exists or not.
  static func url(id: String, profile: String) throws -> URL {
    try check(id, "a game's identifier")
    try check(profile, "a profile's name")
    return try base().appendingPathComponent(id, isDirectory: true).appendingPathComponent(profile, isDirectory: true)
  }

  /// A name that is one ordinary folder on every platform.
  static func check(_ name: String, _ what: String) throws {
    let allowed = name.unicodeScalars.allSatisfy { scalar in
      scalar.value >= 32 && !"/\\:*?\"<>|".unicodeScalars.contains(scalar) && scalar.value != 127
    }
    // 200 leaves room for what is added to names within the 255 bytes that file systems take.
    guard allowed, !name.isEmpty, name.utf8.count <= 200, !name.hasPrefix("."), !name.hasSuffix("."), !name.hasSuffix(" ")
    else {
      throw GameDataError(
        .misuse, "\(what) names a folder, without / \\ : * ? \" < > | and without a dot at its ends; \"\(name)\" can't")
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
