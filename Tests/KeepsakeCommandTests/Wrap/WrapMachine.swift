#if Cloud
import Foundation
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeCommand

/// A machine of a test: a home folder of its own, and what it shares with the others.
final class WrapMachine {
  static let tool = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    .appendingPathComponent("keepsake")

  /// The command as a shell starts it: whoever runs the tests may ignore signals, and what a process ignores, its
  /// children do, too.
  static var start: (program: URL, arguments: [String]) {
    #if os(Linux)
    (URL(fileURLWithPath: "/usr/bin/env"), ["--default-signal", tool.path])
    #else
    (tool, [])
    #endif
  }

  let home: URL
  let shared: URL
  /// The options that name the cloud; the shared folder by default.
  var cloud: [String]
  /// What a game's program sees as its folder of saves.
  var saves: URL { home.appending(path: ".game") }
  var state: URL { home.appending(path: ".local/share/keepsake/games/game") }

  /// - Parameter root: The folder in which all machines of a test are.
  init(_ name: String, in root: URL) throws {
    home = root.appending(path: name)
    shared = root.appending(path: "Dropbox")
    cloud = ["--folder", shared.path]
    for folder in [home, shared] {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }
  }

  static func with<Result>(_ names: [String], _ body: ([WrapMachine]) async throws -> Result) async throws -> Result {
    try #require(FileManager.default.isExecutableFile(atPath: tool.path), "\(tool.path)")
    return try await TemporaryFolder.with { root in
      try await body(names.map { try WrapMachine($0, in: root) })
    }
  }

  var environment: [String: String] {
    [
      "HOME": home.path, "XDG_DATA_HOME": home.appending(path: ".local/share").path,
      "XDG_CONFIG_HOME": home.appending(path: ".config").path,
    ]
  }

  /// The arguments of a wrap with short times, in front of the game.
  func arguments(_ options: [String]) -> [String] {
    ["wrap", "--game", "Game", "--saves", "~/.game", "--interval", "20", "--settle", "40"] + cloud + options + ["--"]
  }

  /// Plays: runs a shell's script in the place of the game, in the home folder, and waits until it has ended.
  @discardableResult
  func play(_ script: String, _ options: String..., input: String = "") throws -> TestSupport.ChildProcess.Ended {
    try TestSupport.ChildProcess.run(
      Self.start.program, Self.start.arguments + arguments(options) + ["sh", "-c", "cd; \(script)"],
      input: Data(input.utf8), environment: environment)
  }

  /// Runs another command of keepsake.
  func run(_ arguments: String...) throws -> TestSupport.ChildProcess.Ended {
    try TestSupport.ChildProcess.run(Self.tool, arguments, environment: environment)
  }

  func write(_ text: String, to name: String) throws {
    let url = saves.appending(path: name)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: url)
  }

  func read(_ name: String) throws -> String? {
    let url = saves.appending(path: name)
    guard FileManager.default.fileExists(atPath: url.path) else { return nil }
    return try String(contentsOf: url, encoding: .utf8)
  }

  /// The names in the folder of saves.
  func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: saves.path).sorted() }

  func history(_ name: String) throws -> [VersionReport] {
    try StoreReader.open(at: state).read { try SlotReport("file:home/.game/\(name)", in: $0) }.versions
  }
}
#endif
