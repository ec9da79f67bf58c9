#if Cloud
import Foundation
import KeepsakeMirror
import Testing

@testable import KeepsakeCommand

/// What a manifest in Ludusavi's format says about a game.
@Suite struct GameManifestTests {
  static let text = """
    # A comment.
    ---
    'It''s a Game':
      files:
        <home>/quoted: {}
    An Example Game:
      files:
        <base>/saves:
          tags:
            - save
        <base>/settings.json:
          when:
            - os: windows
            - os: linux
          tags:
            - config
        <home>/.example/<storeUserId>/*.sav:
          when:
            - os: linux
              store: steam
        <winDocuments>/Example:
          when:
            - os: windows
      installDir:
        AnExampleGame: {}
      registry:
        HKEY_CURRENT_USER/Software/An Example Game:
          tags:
            - save
      steam:
        id: 123
      notes:
        - whatever a later version has
    An Example Game 2:
      alias: An Example Game
    "Caf\\u00e9: a \\"Game\\"":
      files:
        <xdgConfig>/cafe: {}
    Loop:
      alias: Loop
    Wrong:
      files:
        - a list
    Odd token:
      files:
        <hoem>/x: {}
    Relative:
      files:
        ../x: {}
    Elsewhere:
      files:
        <winAppData>/x:
          when:
            - os: windows
    """

  static func find(_ game: String, in text: String = Self.text) throws -> GameManifest {
    try GameManifest.find(game, in: Data(text.utf8))
  }

  static let linux = SavePlaces(
    platform: .linux, environment: [:], home: "/home/ann", user: "ann", base: "/opt/AnExampleGame")

  /// The places as text, with `*` for what isn't a name.
  static func texts(_ places: [SavePlace]) -> [String] {
    places.map { place in
      ([place.anchor.path] + place.components.map { $0.literalName ?? "*" }).joined(separator: "/") + " as "
        + place.anchor.name
    }
  }

  private func code(of game: String, in text: String = Self.text) -> GameManifestError.Code? {
    code(of: game, in: Data(text.utf8))
  }

  /// Why a game isn't found, or has a path that isn't one.
  private func code(of game: String, in bytes: Data) -> GameManifestError.Code? {
    do {
      _ = try GameManifest.find(game, in: bytes).places(in: Self.linux, store: nil)
      return nil
    } catch {
      return error.code
    }
  }

  @Test("a game's paths apply by system and store, and those of settings alone are left out")
  func places() throws {
    let game = try Self.find("An Example Game")
    #expect(game.folders == ["AnExampleGame"] && game.steamID == "123")
    #expect(
      Self.texts(try game.places(in: Self.linux, store: "steam"))
        == ["/opt/AnExampleGame/saves as base", "/home/ann/.example/*/* as home"])
    #expect(Self.texts(try game.places(in: Self.linux, store: "gog")) == ["/opt/AnExampleGame/saves as base"])
    #expect(try game.places(in: Self.linux, store: nil).count == 2)
  }

  @Test("a game of Windows in Wine has its paths in the prefix, under the names that Windows itself has")
  func wine() throws {
    let game = try Self.find("An Example Game")
    let proton = SavePlaces(
      platform: .linux, environment: ["STEAM_COMPAT_DATA_PATH": "/steam/1"], home: "/home/ann", user: "ann",
      winePrefix: "/steam/1/pfx")
    #expect(
      Self.texts(try game.places(in: proton, store: "gog"))
        == ["/steam/1/pfx/drive_c/users/steamuser/Documents/Example as winDocuments"])
    let windows = SavePlaces(platform: .windows, environment: [:], home: "C:/Users/Ann", user: "Ann")
    #expect(
      Self.texts(try game.places(in: windows, store: nil)) == ["C:/Users/Ann/Documents/Example as winDocuments"])
  }

  @Test("names in quotes, with escapes and colons are found, and aliases lead to their game")
  func names() throws {
    #expect(try Self.find("It's a Game").entries.map(\.path) == ["<home>/quoted"])
    #expect(try Self.find("Café: a \"Game\"").entries.map(\.path) == ["<xdgConfig>/cafe"])
    #expect(try Self.find("An Example Game 2").steamID == "123")
    #expect(code(of: "Loop") == .form)
  }

  @Test("the same in JSON is read, too")
  func json() throws {
    let json = #"{"A": {"files": {"<home>/a": {"when": [{"os": "linux"}], "tags": ["save"]}}}, "B": {}}"#
    #expect(Self.texts(try Self.find("A", in: json).places(in: Self.linux, store: nil)) == ["/home/ann/a as home"])
    #expect(try Self.find("B", in: json).entries.isEmpty)
    #expect(code(of: "C", in: json) == .unknownGame)
  }

  @Test("what isn't a manifest is an error that says where")
  func wrong() throws {
    #expect(code(of: "Wrong") == .form)
    #expect(code(of: "Example") == .unknownGame)
    let unknown = #expect(throws: GameManifestError.self) { try Self.find("example game") }
    #expect(unknown?.next == "it has An Example Game, An Example Game 2")
    #expect(code(of: "Odd token") == .token)
    #expect(code(of: "Relative") == .path)
    #expect(try Self.find("Elsewhere").places(in: Self.linux, store: nil).isEmpty)
    #expect(code(of: "A", in: "A:\n  files: [\n") == .form)
    #expect(code(of: "A", in: "A: {}\nA: {}\n") == .form)
    let deep = String(repeating: "[", count: 100_000)
    #expect(code(of: "A", in: "A:\n  files: \(deep)\n") == .form)
    #expect(code(of: "A", in: "{\"A\": \(deep)\n") == .form)
    let steps = (0..<1_000).map { String(repeating: " ", count: $0 + 1) + "a:\n" }.joined()
    #expect(code(of: "A", in: "A:\n" + steps) == .form)
    #expect(code(of: "A", in: Data("A:\n  x: \u{7F}".utf8) + [0xFF]) == .form)
    #expect(
      code(of: "A", in: "A:\n  x: \(String(repeating: "a", count: GameManifest.maximumParsedBytes))")
        == .tooLarge)
  }

  @Test("a repeated reference to a large value doesn't grow", arguments: ["A:\n", ""])
  func references(head: String) throws {
    var lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in 1...30 {
      lines.append("a\(level): &a\(level) [\((0..<10).map { _ in "*a\(level - 1)" }.joined(separator: ", "))]")
    }
    let body = head.isEmpty ? lines : lines.map { "  " + $0 }
    // Nothing of it is asked for, so nothing of it is unfolded.
    if head.isEmpty {
      #expect(code(of: "A", in: body.joined(separator: "\n")) == .unknownGame)
    } else {
      #expect(try Self.find("A", in: head + body.joined(separator: "\n")).entries.isEmpty)
    }
  }
}
#endif
