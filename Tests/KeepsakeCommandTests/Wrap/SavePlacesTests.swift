#if Cloud
import Foundation
import KeepsakeMirror
import TestSupport
import Testing

@testable import KeepsakeCommand

/// From paths with tokens to the folders that are mirrored.
@Suite struct SavePlacesTests {
  private func texts(_ text: String, in places: SavePlaces) throws -> [String] {
    GameManifestTests.texts(try places.places(of: text))
  }

  @Test("the tokens mean what each system has, and the nearest of them names the slots")
  func tokens() throws {
    let linux = SavePlaces(
      platform: .linux, environment: ["XDG_DATA_HOME": "/data/ann", "XDG_CONFIG_HOME": "relative"],
      home: "/home/ann", user: "ann", base: "/games/Foo", root: "/games", game: "Foo", storeGameID: "7")
    #expect(try texts("<xdgData>/Foo", in: linux) == ["/data/ann/Foo as xdgData"])
    #expect(try texts("<home>/.config/Foo", in: linux) == ["/home/ann/.config/Foo as xdgConfig"])
    #expect(try texts("<root>/<game>/save_<osUserName>", in: linux) == ["/games/Foo/save_ann as base"])
    #expect(try texts("<base>/../Bar/<storeGameId>", in: linux) == ["/games/Bar/7 as root"])
    #expect(try texts("/var/games/foo", in: linux) == ["//var/games/foo as disk"])
    #expect(try texts("<winAppData>/Foo", in: linux) == [])
    let mac = SavePlaces(platform: .mac, environment: [:], home: "/Users/ann", user: "ann")
    #expect(try texts("<home>/Library/Foo", in: mac) == ["/Users/ann/Library/Foo as home"])
    #expect(try texts("<xdgData>/Foo", in: mac) == [])
    let windows = SavePlaces(
      platform: .windows, environment: ["APPDATA": "D:\\Roaming"], home: "C:\\Users\\Ann", user: "Ann")
    #expect(try texts("<winAppData>/Foo", in: windows) == ["D:/Roaming/Foo as winAppData"])
    #expect(try texts("<home>\\Saved Games\\Foo", in: windows) == ["C:/Users/Ann/Saved Games/Foo as winHome"])
    #expect(try texts("<winProgramData>/x", in: windows) == ["C:/ProgramData/x as winProgramData"])
    #expect(try texts("E:/Foo/x", in: windows) == ["E:/Foo/x as diskE"])
    for wrong in ["Foo", "<home>x/y", "<home>/<base>/x", "<storeUserId>/x", "<nothing>/x", "<home>/*/../../../../.."] {
      #expect(throws: GameManifestError.self) { try linux.places(of: wrong) }
    }
  }

  @Test("an area is the folder around its places, and no file is in two of them")
  func areas() throws {
    let places = GameManifestTests.linux
    func areas(_ texts: String...) throws -> [SaveArea] {
      try SaveArea.areas(of: texts.flatMap { try places.places(of: $0) })
    }
    let one = try #require(try areas("<home>/.foo").first)
    #expect(one.folder == "/home/ann" && one.selection.prefix == "home/")
    #expect(one.path(of: "file:home/.foo/a/b") == [".foo", "a", "b"])
    #expect(one.path(of: "file:home/.foo") == [".foo"] && one.path(of: "file:home/.food") == nil)
    #expect(try areas("<home>/.foo", "<home>/.foo/saves", "<home>/.foo/*.sav") == [one])
    let two = try areas("<home>/.foo/*.sav", "<home>/.foo/saves", "<xdgData>/foo")
    #expect(two.map(\.folder) == ["/home/ann/.foo", "/home/ann/.local/share"])
    #expect(two[0].selection.takes(["a.sav"]) && two[0].selection.takes(["saves", "x"]))
    #expect(!two[0].selection.takes(["a.cfg"]))
    let deep = try areas("<home>/.foo/*/x", "<home>/.foo/a/y", "<home>/.foo/a/x")
    #expect(deep.count == 1 && deep[0].selection.patterns.count == 2)
    #expect(throws: CommandFailure.self) { try areas("<home>") }
    #expect(try areas("<base>").first?.selection.takes(["any", "thing"]) == true)
    #expect(one.overlaps("/home/ann/.foo/state") && one.overlaps("/home") && !one.overlaps("/home/ann/Dropbox"))
  }

  @Test("a save place that is a link leads to its folder, under the same slots")
  func link() throws {
    let root = TemporaryFolder.url("link")
    defer { try? FileManager.default.removeItem(at: root) }
    for name in ["home", "disk/saves"] {
      try FileManager.default.createDirectory(at: root.appending(path: name), withIntermediateDirectories: true)
    }
    let places = SavePlaces(
      platform: .linux, environment: [:], home: root.appending(path: "home").path, user: "ann")
    let before = try #require(try SaveArea.areas(of: places.places(of: "<home>/.foo")).first)
    try FileManager.default.createSymbolicLink(
      at: root.appending(path: "home/.foo"), withDestinationURL: root.appending(path: "disk/saves"))
    let after = try #require(try SaveArea.areas(of: places.places(of: "<home>/.foo")).first)
    #expect(after.folder == before.folder + "/.foo")
    #expect(before.path(of: "file:home/.foo/a") == [".foo", "a"] && after.path(of: "file:home/.foo/a") == ["a"])
  }

  @Test("a path is made absolute as the system follows it, and what is above a link is above the folder it leads to")
  func absolute() throws {
    let root = TemporaryFolder.url("absolute").resolvingSymlinksInPath()
    defer { try? FileManager.default.removeItem(at: root) }
    for name in ["home", "disk/saves"] {
      try FileManager.default.createDirectory(at: root.appending(path: name), withIntermediateDirectories: true)
    }
    try FileManager.default.createSymbolicLink(
      at: root.appending(path: "home/link"), withDestinationURL: root.appending(path: "disk/saves"))
    #expect(WrapCommand.absolute(root.path + "/./home//x/../a/") == root.path + "/home/a")
    #expect(WrapCommand.absolute(root.path + "/home/link/../b") == root.path + "/disk/b")
    #expect(WrapCommand.absolute(root.path + "/home/link") == root.path + "/home/link")
    #expect(WrapCommand.absolute("/../a") == "/a")
    let current = FileManager.default.currentDirectoryPath
    #expect(WrapCommand.absolute(".") == current && WrapCommand.absolute("./saves") == current + "/saves")
  }

  @Test("a game's folder is found in a library of Steam, behind Steam's own tools, or by its program")
  func install() throws {
    let steam = GameInstall(
      command: [
        "/s/steamapps/common/SteamLinuxRuntime_sniper/_v2-entry-point", "--", "/s/steamapps/common/Proton 9/proton",
        "run", "/s/steamapps/common/Foo Game/bin/foo.exe", "-windowed",
      ],
      environment: ["STEAM_COMPAT_DATA_PATH": "/s/steamapps/compatdata/7", "WINEPREFIX": "/other"])
    #expect(steam.base(folders: []) == "/s/steamapps/common/Foo Game" && steam.root == "/s" && steam.store == "steam")
    #expect(steam.winePrefix == "/s/steamapps/compatdata/7/pfx")
    let own = GameInstall(command: ["/opt/Foo/bin/linux/foo"], environment: [:])
    #expect(own.base(folders: ["Foo"]) == "/opt/Foo" && own.base(folders: []) == "/opt/Foo/bin/linux")
    #expect(own.store == nil && GameInstall(command: [], environment: [:]).base(folders: []) == nil)
  }

  @Test("a game's name gives the same folder name on every device, and different ones for different games")
  func folderNames() {
    #expect(GameFolderName.of("Stardew Valley") == "stardew-valley" && GameFolderName.of("NetHack") == "nethack")
    let odd = ["../x", "..", "", "a/b", "a:b", "Café", "CON?", ".keepsake", String(repeating: "a", count: 100)]
    for name in odd {
      let folder = GameFolderName.of(name)
      #expect(folder.wholeMatch(of: /[a-z0-9_-][a-z0-9_.-]*/) != nil && folder.count < 80, "\(name): \(folder)")
      #expect(!folder.hasPrefix(".") && folder != name)
    }
    #expect(Set(odd.map(GameFolderName.of)).count == odd.count)
  }

  @Test("settings are read strictly")
  func settings() throws {
    let folder = TemporaryFolder.url("settings")
    defer { try? FileManager.default.removeItem(at: folder) }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appending(path: WrapSettings.fileName)
    #expect(try WrapSettings.read(in: folder) == WrapSettings())
    try Data(#"{"folder": "/d", "wait": 3}"#.utf8).write(to: file)
    #expect(try WrapSettings.read(in: folder) == WrapSettings(folder: "/d", wait: 3))
    for wrong in [#"{"fodler": "/d"}"#, "[]", "{", #"{"wait": "3"}"#] {
      try Data(wrong.utf8).write(to: file)
      #expect(throws: CommandFailure.self, "\(wrong)") { try WrapSettings.read(in: folder) }
    }
  }
}
#endif
