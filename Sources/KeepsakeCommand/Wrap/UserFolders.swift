#if Cloud
import Foundation
import KeepsakeReplication

/// The folders of a user's settings and data, as the platform has them.
struct UserFolders: Sendable {
  var settings: URL
  var data: URL

  /// - Parameter environment: The variables of the environment.
  init(platform: GamePlatform = .current, environment: [String: String], home: String) {
    let home = URL(fileURLWithPath: home, isDirectory: true)
    func folder(_ variable: String, or path: String) -> URL {
      (environment.folder(variable).map { URL(fileURLWithPath: $0, isDirectory: true) }
        ?? home.appendingPathComponent(path, isDirectory: true)).appendingPathComponent("keepsake", isDirectory: true)
    }
    switch platform {
    case .linux:
      settings = folder("XDG_CONFIG_HOME", or: ".config")
      data = folder("XDG_DATA_HOME", or: ".local/share")
    case .mac:
      settings = folder("", or: "Library/Application Support")
      data = settings
    case .windows:
      settings = folder("APPDATA", or: "AppData/Roaming")
      data = folder("LOCALAPPDATA", or: "AppData/Local")
    }
  }
}

/// A game's name as the name of a folder: the same on every device, and one that every file system takes.
enum GameFolderName {
  private static let maximumLength = 60

  static func of(_ name: String) -> String {
    var isPlain = true
    let letters = name.lowercased().unicodeScalars.map { scalar -> Character in
      switch scalar {
      case "a"..."z", "0"..."9", "_", ".", "-": return Character(scalar)
      case " ": return "-"
      default:
        isPlain = false
        return "-"
      }
    }
    let short = String(letters.prefix(maximumLength))
    isPlain =
      isPlain && letters.count <= maximumLength && !short.hasPrefix(".") && !short.hasSuffix(".")
      && !short.hasPrefix(SyncState.folderName) && !short.isEmpty
    guard !isPlain else { return short }
    // What was replaced still makes a difference.
    let hash = ContentHash(of: Data(name.lowercased().utf8)).description.prefix(8)
    return "\(short.trimmingCharacters(in: CharacterSet(charactersIn: ".-")))-\(hash)"
  }
}
#endif
