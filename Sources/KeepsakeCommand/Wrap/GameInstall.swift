#if Cloud
import Foundation

/// What the command of a game and the environment say about where it is installed.
struct GameInstall: Sendable {
  /// The folder of the program, or the game's folder in a library of Steam.
  private var folder: String?
  /// The library of a store.
  private(set) var root: String?
  private(set) var store: String?
  /// The folder with `drive_c`, if the game runs in Wine or Proton.
  private(set) var winePrefix: String?

  private static let library = "/steamapps/common/"

  init(command: [String], environment: [String: String]) {
    // Steam's command has its own tools first, which are in such a folder as well.
    if let program = command.last(where: { $0.contains(Self.library) }),
      let range = program.range(of: Self.library), let name = program[range.upperBound...].split(separator: "/").first
    {
      root = String(program[..<range.lowerBound])
      folder = String(program[..<range.upperBound]) + name
      store = "steam"
    } else if let program = command.first.flatMap({ Self.found($0, environment["PATH"] ?? "") }) {
      folder = URL(fileURLWithPath: program).resolvingSymlinksInPath().deletingLastPathComponent().path
    }
    if environment["SteamAppId"] != nil || environment["SteamGameId"] != nil { store = "steam" }
    winePrefix = environment.folder("STEAM_COMPAT_DATA_PATH").map { $0 + "/pfx" } ?? environment.folder("WINEPREFIX")
  }

  /// Returns where the game is installed; of folders with these names the one that its program is in.
  func base(folders names: [String]) -> String? {
    guard let folder else { return nil }
    let parts = SavePlaces.parts(folder)
    guard let index = parts.lastIndex(where: names.contains) else { return folder }
    return "/" + parts[...index].joined(separator: "/")
  }

  private static func found(_ program: String, _ path: String) -> String? {
    if program.contains("/") {
      return program.hasPrefix("/") ? program : FileManager.default.currentDirectoryPath + "/" + program
    }
    return path.split(separator: ":").map { $0 + "/" + program }.first {
      FileManager.default.isExecutableFile(atPath: $0)
    }
  }
}
#endif
