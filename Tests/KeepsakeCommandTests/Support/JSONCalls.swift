#if Cloud && os(Linux)
import Foundation
import GRDB
import Keepsake

@testable import KeepsakeCommand

/// Calls of each subcommand with --json, on small inputs in one folder. Arguments such as `$PLAYER` stand for what an
/// earlier call has printed under that name, in small letters; `$OLDEST` is the oldest version of the store `space`.
struct JSONCall {
  var arguments: [String]
  var status: Int32
  /// What is printed for a status of a failure: an error, unless a result says it.
  var isResult: Bool
  /// Members of the object, or of the first line, and what they are.
  var members: [String: String]

  init(_ arguments: String..., status: Int32 = 0, isResult: Bool = false, members: [String: String] = [:]) {
    (self.arguments, self.status, self.isResult, self.members) = (arguments, status, isResult, members)
  }

  /// In an order in which each has what it needs.
  ///
  /// - Parameter cloud: A running cloud with the webhook `shop`, whose data are in the folder `cloud` beside that of
  ///   the calls.
  static func all(cloud: RunningCloud) -> [(command: String, calls: [JSONCall])] {
    local + served(by: cloud) + administered(cloud)
  }

  private static var local: [(command: String, calls: [JSONCall])] {
    return [
      (
        "export",
        [
          JSONCall("space", "main", "a.save", members: ["path": "space", "output": "a.save", "slot": "main"]),
          JSONCall("sealed", "main", "b.save", "--secret-file", "secret", members: ["path": "sealed"]),
          JSONCall("space", "main", "a.save", status: 73), JSONCall("space", "gone", "c.save", status: 66),
        ]
      ),
      (
        "inspect",
        [
          JSONCall("a.json", members: ["path": "a.json"]), JSONCall("space", members: ["path": "space"]),
          JSONCall("./space/", members: ["path": "./space/"]), JSONCall("a.save", members: ["path": "a.save"]),
          JSONCall("space", "--slot", "main", members: ["path": "space", "slot": "main"]),
          JSONCall("sealed", "--secret-file", "secret", members: ["path": "sealed"]), JSONCall("object.archive"),
          JSONCall("a.json", "space", "gone", status: 66, isResult: true), JSONCall("gone", status: 66),
        ]
      ),
      (
        "diff",
        [
          JSONCall("a.json", "b.json", status: 1), JSONCall("a.json", "a.json"),
          JSONCall("--classes", "object.archive", "a.json", status: 1), JSONCall("text", "a.json", status: 65),
          JSONCall("space", "sealed", "--slot", "main", "--secret-file", "secret"),
        ]
      ),
      (
        "verify",
        [
          JSONCall("space", "a.save"), JSONCall("text", "gone", status: 66, isResult: true),
          JSONCall("empty", status: 66), JSONCall("damaged", status: 1),
        ]
      ),
      (
        "convert",
        [
          JSONCall("a.json", "a.plist", members: ["path": "a.json", "output": "a.plist"]),
          JSONCall("a.json", "gone", "--to", "xml", "empty", status: 66, isResult: true),
          JSONCall("object.archive", "object.json", "--lossy"), JSONCall("text", "text.json", status: 65),
          JSONCall("a.base64", "b.plist", members: ["path": "a.base64"]),
        ]
      ),
      (
        "history",
        [
          JSONCall("space", members: ["path": "space"]), JSONCall("space", "main"),
          JSONCall("space", "gone", status: 66),
        ]
      ),
      (
        "restore",
        [
          JSONCall("space", "main", "$OLDEST", members: ["path": "space", "slot": "main"]),
          JSONCall("space", "main", "0000", status: 66),
        ]
      ),
      (
        "import",
        [
          JSONCall(
            "space", "a.save", "--slot", "other", members: ["path": "a.save", "output": "space", "slot": "other"]),
          JSONCall("space", "text", status: 65),
        ]
      ),
      (
        "scores",
        [JSONCall("space", members: ["path": "space"]), JSONCall("space", "--board", "gone", status: 66)]
      ),
      (
        "doctor",
        [
          JSONCall("space", members: ["path": "space", "state": "sound"]),
          JSONCall("damaged", status: 1, members: ["path": "damaged", "state": "damaged"]),
          JSONCall("damaged", "--repair", members: ["state": "repaired"]),
          JSONCall("rows", status: 1, members: ["state": "damaged"]), JSONCall("gone", status: 66),
        ]
      ),
      (
        "estimate",
        [
          JSONCall("a.json", "b.json"), JSONCall("saves"), JSONCall("gone", status: 66),
          JSONCall("odd", status: 66, isResult: true),
        ]
      ),
      (
        "assets manifest",
        [
          JSONCall("assets", "--check", status: 1),
          JSONCall("assets", members: ["path": "assets", "output": "assets/keepsake-assets.json"]),
          JSONCall("assets", "--output", "list", members: ["output": "list"]), JSONCall("gone", status: 66),
        ]
      ),
      (
        "assets verify",
        [
          JSONCall("assets", members: ["path": "assets", "manifest": "assets/keepsake-assets.json"]),
          JSONCall("saves", "--manifest", "list", status: 1, members: ["state": "damaged"]),
          JSONCall("gone", status: 66),
        ]
      ),
      (
        "simulate",
        [
          JSONCall("--seeds", "1", "--operations", "10"), JSONCall("--trace", "--operations", "10"),
          JSONCall("--exhaustive", "--start", "shared", "--depth", "1"),
          JSONCall("--seeds", "4", "--planted", "coverUnloaded", status: 1),
        ]
      ),
      ("manual", [JSONCall()]),
      (
        "serve",
        [
          JSONCall("--data", "cloud", "--print-config"), JSONCall("--data", "cloud", "--config", "text", status: 65),
          JSONCall(
            "--data", "cloud", "--port", "0", "--metrics-port", "0", "--admin-port", "0", "--until-input-ends",
            members: ["event": "ready", "path": "cloud"]),
        ]
      ),
      (
        "bank key",
        [
          JSONCall("--data", "cloud", "--name", "shop", members: ["path": "cloud", "name": "shop"]),
          JSONCall("--data", "gone", "--name", "shop", status: 66),
        ]
      ),
      ("bank keys", [JSONCall("--data", "cloud", members: ["path": "cloud"])]),
      (
        "bank remove-key",
        [
          JSONCall("--data", "cloud", "--name", "shop", members: ["path": "cloud", "name": "shop"]),
          JSONCall("--data", "cloud", "--name", "shop", status: 66),
        ]
      ),
      (
        "app create",
        [
          JSONCall("--data", "cloud", "--name", "dungeon", members: ["path": "cloud", "name": "dungeon"]),
          JSONCall("--data", "cloud", "--name", "dungeon", status: 64),
        ]
      ),
      // Without a database, only what is wrong with their arguments.
      ("shard list", [JSONCall("--database", "postgres://none", "--shard", "two", status: 64)]),
      (
        "shard move",
        [
          JSONCall(
            "--database", "postgres://none", "--shard", "two=", "--from", "home", "--to", "two", status: 64)
        ]
      ),
      ("shard drain", [JSONCall("--from", "home", status: 64)]),
      ("shard open", [JSONCall("--database", "postgres://none", "--shard", "home=x", "home", status: 64)]),
      ("shard close", [JSONCall("--database", "postgres://none", "--shard", "home=x", "home", status: 64)]),
      ("shard hold", [JSONCall("--database", "postgres://none", "--shard", "home=x", status: 64)]),
      ("shard release", [JSONCall("--database", "postgres://none", "--shard", "home=x", status: 64)]),
      ("app rotate", [JSONCall("--data", "cloud", "--name", "dungeon", members: ["name": "dungeon"])]),
      ("app list", [JSONCall("--data", "cloud", members: ["path": "cloud"])]),
      (
        "team create",
        [
          JSONCall("--data", "cloud", "studio", members: ["team": "studio"]),
          JSONCall("--data", "cloud", "studio", status: 64),
        ]
      ),
      (
        "team add",
        [
          JSONCall("--data", "cloud", "studio", "dungeon", members: ["app": "dungeon"]),
          JSONCall("--data", "cloud", "studio", "kingdom", status: 66),
        ]
      ),
      (
        "team share",
        [
          JSONCall("--data", "cloud", "studio", "studio.coins", members: ["container": "studio.coins"]),
          JSONCall("--data", "cloud", "studio", "Studio Coins", status: 64),
        ]
      ),
      (
        "team grant",
        [
          JSONCall("--data", "cloud", "studio", "studio.coins", "dungeon", members: ["access": "readWrite"]),
          JSONCall("--data", "cloud", "studio", "gone", "dungeon", status: 66),
        ]
      ),
      ("team list", [JSONCall("--data", "cloud", members: ["path": "cloud"])]),
      (
        "team withdraw",
        [JSONCall("--data", "cloud", "studio", "studio.coins", "dungeon", members: ["app": "dungeon"])]
      ),
      ("team remove", [JSONCall("--data", "cloud", "studio", "dungeon", members: ["team": "studio"])]),
      (
        "app revoke",
        [
          JSONCall("--data", "cloud", "--name", "dungeon", "--key", "00000000", status: 66),
          JSONCall("--data", "cloud", "--name", "dungeon", members: ["name": "dungeon"]),
        ]
      ),
      ("secret rotate", [JSONCall("--data", "cloud", members: ["path": "cloud"])]),
      ("secret list", [JSONCall("--data", "cloud", members: ["path": "cloud"])]),
      (
        "secret forget",
        [JSONCall("--data", "cloud", members: ["path": "cloud"]), JSONCall("--data", "empty", status: 66)]
      ),
      (
        "cloud backup",
        [
          JSONCall("--data", "cloud", "--to", "a.tar", members: ["path": "cloud", "output": "a.tar"]),
          JSONCall("--data", "cloud", "--to", "a.tar", status: 73),
        ]
      ),
      (
        "cloud verify",
        [JSONCall("--from", "a.tar", members: ["path": "a.tar"]), JSONCall("--from", "text", status: 65)]
      ),
      (
        "cloud restore",
        [JSONCall("--from", "a.tar", "--data", "restored", members: ["path": "a.tar", "output": "restored"])]
      ),
      ("migrate", [JSONCall("--from", "gone", "--to", "postgres://127.0.0.1:1/cloud", status: 66)]),
      ("bank restored", [JSONCall("--data", "restored", members: ["path": "restored"])]),
      ("bank status", [JSONCall("--data", "restored", members: ["path": "restored"])]),
      ("demo", [JSONCall()]),
    ]
  }

  private static func served(by cloud: RunningCloud) -> [(command: String, calls: [JSONCall])] {
    let sync = ["--once", "--interval", "20", "--settle", "40"]
    let server = ["--cloud", cloud.url, "--app-key", cloud.appKey]
    func call(_ arguments: [String], _ members: [String: String], status: Int32 = 0) -> JSONCall {
      var call = JSONCall(status: status, members: members)
      call.arguments = arguments
      return call
    }
    return [
      (
        "bank release",
        [
          JSONCall("--data", "restored", "--all", members: ["path": "restored"]),
          JSONCall("--url", cloud.url, "--key-file", "secret", "--all", status: 77),
        ]
      ),
      (
        "load",
        [
          call(
            ["--url", cloud.url, "--app-key", cloud.appKey, "--devices", "1", "--seconds", "0.2", "--hostile", "1"],
            ["url": cloud.url]),
          JSONCall("--devices", "1", "--seconds", "0.2", "--baselines"),
          JSONCall("--url", "http://127.0.0.1:9", "--app-key", "key", status: 69),
        ]
      ),
      (
        "sync",
        [
          call(
            ["saves", "--folder", "shared"] + sync,
            ["event": "ready", "path": "saves", "sharedFolder": "shared", "stateFolder": "saves/.keepsake"]),
          call(["saves 2", "--folder", "shared"] + sync, ["event": "ready", "path": "saves 2"]),
          call(["odd", "--pair", "--new-recovery-code"] + server + sync, ["event": "ready", "path": "odd"]),
          call(["empty", "--join", "$PAIRINGCODE"] + server + sync, ["event": "ready", "path": "empty"]),
          call(["gone", "--folder", "shared"] + sync, [:], status: 66),
        ]
      ),
      (
        "wrap",
        [
          call(
            ["--saves", "saves", "--state", "wrapped", "--folder", "shared", "--", "echo", "{}"],
            ["event": "ready", "game": "echo", "stateFolder": "wrapped"]),
          call(["--saves", "odd", "--state", "wrapped 2", "--pair"] + server + ["--", "echo", "{}"], [:]),
          call(["--saves", "saves", "--state", "wrapped", "--", "no-such-program"], [:], status: 66),
        ]
      ),
    ]
  }

  private static func administered(_ cloud: RunningCloud) -> [(command: String, calls: [JSONCall])] {
    let (version, unknown) = ("$VERSION", String(repeating: "2", count: 32))
    func asked(_ arguments: String..., status: Int32 = 0, members: [String: String] = [:]) -> JSONCall {
      var call = JSONCall(status: status, members: members)
      call.arguments = arguments + ["--url", cloud.adminURL, "--key-file", "admin"]
      return call
    }
    let player = ["player": "$PLAYER"]
    return [
      (
        "admin key create",
        [
          JSONCall(
            "--data", "../cloud", "--name", "bob", "--scopes", "read", members: ["path": "../cloud", "name": "bob"])
        ]
      ),
      ("admin key list", [JSONCall("--data", "../cloud", members: ["path": "../cloud"])]),
      ("admin key revoke", [JSONCall("--data", "../cloud", "--name", "bob", members: ["name": "bob"])]),
      ("admin player find", [asked("--device", "$DEVICE"), asked("--device", unknown)]),
      ("admin player ban", [asked("$PLAYER", "--reason", "cheating", members: player)]),
      ("admin player show", [asked("$PLAYER", members: player), asked(unknown, status: 66)]),
      ("admin player unban", [asked("$PLAYER", members: player)]),
      (
        "admin player export",
        [
          asked("$PLAYER", "--output", "player.tar", members: ["player": "$PLAYER", "output": "player.tar"]),
          asked("$PLAYER", "--output", "player.tar", status: 73),
        ]
      ),
      ("admin save list", [asked("$PLAYER", members: player), asked("$PLAYER", "--slot", "file:slot1.sav")]),
      (
        "admin save show",
        [
          asked("$PLAYER", version),
          asked("$PLAYER", version, "--output", "shown", members: ["output": "shown", "version": version]),
          asked("$PLAYER", unknown, status: 66),
        ]
      ),
      ("admin save diff", [asked("$PLAYER", version, version)]),
      ("admin save restore", [asked("$PLAYER", version, "--reason", "sorry", members: player)]),
      ("admin money grant", [asked("$PLAYER", "100", "gems", "--reason", "sorry", members: player)]),
      ("admin money charge", [asked("$PLAYER", "30", "gems", "--reason", "mistake", members: player)]),
      ("admin money refund", [asked("$PLAYER", unknown, "--reason", "sorry", status: 66)]),
      ("admin money show", [asked("$PLAYER", members: player)]),
      ("admin device list", [asked("$PLAYER", members: player)]),
      (
        "admin device clear",
        [asked("$PLAYER", "$DEVICE", members: ["player": "$PLAYER", "device": "$DEVICE"])]
      ),
      (
        "admin device remove",
        [asked("$PLAYER", "$DEVICE", members: ["player": "$PLAYER", "device": "$DEVICE"])]
      ),
      ("admin webhook list", [asked()]),
      (
        "admin webhook dead",
        [asked("shop", members: ["webhook": "shop"]), asked("other", status: 66), asked("..", status: 64)]
      ),
      ("admin webhook retry", [asked("shop", members: ["webhook": "shop"]), asked("other", status: 66)]),
      ("admin player delete", [asked("$PLAYER", "--yes", members: player), asked("$PLAYER", "--yes", status: 66)]),
      (
        "admin audit",
        [JSONCall("--data", "../cloud", members: ["path": "../cloud"]), JSONCall("--data", "../cloud", "--verify")]
      ),
    ]
  }

  // MARK: Inputs

  /// Creates the files that the calls name.
  static func fill(_ folder: URL) throws {
    func url(_ name: String) -> URL { folder.appendingPathComponent(name) }
    for name in ["empty", "assets", "saves", "saves 2", "shared", "odd"] {
      try FileManager.default.createDirectory(at: url(name), withIntermediateDirectories: true)
    }
    let texts = [
      "a.json": #"{"b": 1, "a": "x/y", "list": [1, 2], "bidi": "\#u{202E}"}"#, "b.json": #"{"a": "x/z", "b": 2}"#,
      "text": "once upon a time", "secret": String(repeating: "s", count: 32), "assets/one.txt": "1",
      "saves/slot1.sav": "one", "saves/slot2.sav": "two", "saves 2/slot1.sav": "another",
      "a.base64": Data(#"{"level": 1, "name": "cave"}"#.utf8).base64EncodedString(),
    ]
    for (name, text) in texts { try Data(text.utf8).write(to: url(name)) }
    try FileManager.default.createSymbolicLink(at: url("odd/link"), withDestinationURL: url("text"))
    try writeOddName(in: url("odd"))
    let keyed = NSKeyedArchiver(requiringSecureCoding: false)
    keyed.encode(NSMutableArray(array: ["one", 2]), forKey: "root")
    keyed.finishEncoding()
    try keyed.encodedData.write(to: url("object.archive"))
    try play(in: url("space"), seal: .none)
    try play(in: url("sealed"), seal: .signed(Data(texts["secret", default: ""].utf8)))
    // One store whose database has no header any more, and one of whose contents something is lost.
    for (name, offset) in [("damaged", 2), ("rows", 20)] {
      try play(in: url(name), seal: .none)
      for file in try FileManager.default.contentsOfDirectory(atPath: url(name).path) where file.contains("backup") {
        try FileManager.default.removeItem(at: url(name).appendingPathComponent(file))
      }
      for database in ["store.sqlite", "records.sqlite"] {
        var bytes = try Data(contentsOf: url(name).appendingPathComponent(database))
        bytes[offset] ^= 0xFF
        try bytes.write(to: url(name).appendingPathComponent(database))
      }
    }
  }

  private static func writeOddName(in folder: URL) throws {
    let name: [CChar] = Array(folder.path.utf8CString.dropLast()) + [0x2F, 0x62, -1, -2, 0]
    let file = open(name, O_CREAT | O_WRONLY, 0o600)
    guard file >= 0 else { throw CommandFailure(.io, "no file with an odd name") }
    close(file)
    try Data(#"{"level": 1}"#.utf8).write(to: folder.appendingPathComponent("slot1.sav"))
  }

  /// A store with something of each kind.
  private static func play(in folder: URL, seal: Seal) throws {
    let game = try GameData.open("com.example.space", at: folder, seal: seal)
    for level in 1...2 {
      try game.saves.capture(
        [level], to: Slot<[Int]>("main"),
        SaveMetadata(
          title: "Level \(level)", playtime: 61.5, progress: 0.5, thumbnail: Data([1]), custom: ["Some Key": "1"])
      ).wait()
    }
    game.preferences[PreferenceKey("volume", default: 1.0)] = 0.5
    game.preferences[PreferenceKey("nick", default: "", synced: true)] = "Ada"
    try game.preferences.flush()
    try game.progress.record(3, for: ProgressKey("level", default: 0, rule: .max)).wait()
    try game.scores.submit(7, to: Board("easy", order: .descending), player: "Ada", context: "a replay").wait()
    _ = try game.wallet.earn(5, Currency("gems"), for: "start")
    try game.records.write { try $0.execute(sql: "CREATE TABLE creature (name TEXT)") }
    try game.close()
  }
}
#endif
