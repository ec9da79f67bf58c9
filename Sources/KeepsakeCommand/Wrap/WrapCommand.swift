#if Cloud
import ArgumentParser
import Foundation
import KeepsakeMirror
import KeepsakePlatform
import KeepsakeReplication
import KeepsakeStore
/// `keepsake wrap`: starts a game with the newest saves, and keeps and sends those that it makes.
struct WrapCommand: AsyncParsableCommand, PrintsLines {
  static let jsonForm = JSONForm.linesBesideProgram

  static let configuration = CommandConfiguration(
    commandName: "wrap",
    abstract: "Start a game with the newest saves, and keep and send those that it makes.",
    usage: "keepsake wrap [--game NAME] [--saves PATH ...] [OPTIONS] -- GAME [ARGUMENTS ...]",
    discussion: """
      For any game that keeps its saves in files. Before the game starts, the newest saves come from the cloud or the \
      shared folder. While it runs, every change of a save becomes a version. After it has ended, they are sent. The \
      game keeps the terminal, input and output, and the command ends with the game's exit status. If the cloud can't \
      be reached, the game starts anyway, and the saves are sent the next time.

      Where both this device and another one changed a save, --conflict decides; by default you are asked on a \
      terminal, and both are kept without one: the other one beside yours, as NAME.conflict-XXXXXXXX. Everything that \
      is replaced stays in the history (keepsake history, keepsake restore).

      Where a game keeps its saves is said by --saves, or by a manifest in the format of Ludusavi: --manifest, or \
      manifest.yaml in the folder of settings. --game then names the game as the manifest does. Nothing is fetched.

      Settings for all games are in wrap.json in the folder of settings (~/.config/keepsake on Linux), such as \
      {"folder": "/home/me/Dropbox/saves"}. Without a command after --, it only syncs.

      What the command itself says is on standard error, with --json as one object per line. Lines of the game may \
      come between: sh -c 'exec game 2>game.log' after -- keeps them apart.
      """,
    examples: [
      #"keepsake wrap --game "Some Game" -- %command%     # in Steam's launch options"#,
      "keepsake wrap --saves ~/.local/share/rogue --folder ~/Dropbox/saves -- rogue",
      #"keepsake wrap --game "Some Game" --cloud http://127.0.0.1:8080 --app-key KEY --join CODE"#,
    ])

  @Option(name: .long, help: ArgumentHelp("The game's name, as the manifest has it.", valueName: "name"))
  var game: String?

  @Option(
    name: .long, parsing: .singleValue,
    help: ArgumentHelp(
      "A folder or file of saves; it may have tokens and wildcards, as in a manifest. May be repeated.",
      valueName: "path"),
    completion: .file())
  var saves: [String] = []

  @Option(
    name: .long,
    help: ArgumentHelp("The manifest. [default: manifest.yaml in the folder of settings]", valueName: "file"),
    completion: .file(extensions: ["yaml", "yml", "json"]))
  var manifest: String?

  @Option(
    name: .long,
    help: ArgumentHelp("Where the game is installed, <base> in the manifest. [default: found out]", valueName: "dir"),
    completion: .directory)
  var base: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "The store of the game, for the manifest: steam, gog, epic. [default: found out]", valueName: "name"))
  var store: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "The folder with drive_c, for a game of Windows. [default: Proton's, or $WINEPREFIX]", valueName: "dir"),
    completion: .directory)
  var winePrefix: String?

  @OptionGroup var target: SyncTargetOptions

  @Option(
    name: .long,
    help: ArgumentHelp("What to do if two devices changed a save: ask, mine, theirs or both.", valueName: "choice"),
    completion: .list(ConflictChoice.allCases.map(\.rawValue)))
  var conflict: ConflictChoice?

  @Option(
    name: .long,
    help: ArgumentHelp("How long to wait for a cloud that doesn't answer, in seconds. [default: 20]", valueName: "s"))
  var wait: Int?

  @Option(
    name: .long,
    help: ArgumentHelp("Where credentials and history are kept. [default: a folder for the game]", valueName: "folder"),
    completion: .directory)
  var state: String?

  @OptionGroup var watch: FolderWatchOptions

  @Flag(
    name: .shortAndLong,
    help: "Print JSON on standard error, one object per line, and ask nothing; standard output is the game's.")
  var json = false

  @Argument(parsing: .postTerminator, help: "The game and its arguments.")
  var command: [String] = []

  private static let seconds = 1...3_600
  private static let usualSeconds = 20

  func validate() throws {
    try watch.check()
    _ = try target.location()
    guard wait.map(Self.seconds.contains) ?? true else { throw ValidationError("--wait takes 1 to 3600 seconds.") }
    guard game != nil || !saves.isEmpty else {
      throw ValidationError("Name the game with --game, as a manifest has it, or its saves with --saves.")
    }
    guard game != nil || !command.isEmpty else {
      throw ValidationError("Without a command after --, name the game with --game.")
    }
  }

  func run() async throws {
    try await CommandRun.reporting(json: json, as: Self.jsonForm) {
      let options = try self.options(environment: ProcessInfo.processInfo.environment)
      let stops = GameSignals.catchAll()
      let inbox = WrapInbox(WrapLetters())
      let session = WrapSession(
        options, inbox: inbox,
        ask: { question in
          guard !json, ConflictQuestion.hasTerminal else { return nil }
          Output.errorBytes(Data(question.utf8))
          return ConflictQuestion.readLine { inbox.current.stop != nil }
        },
        emit: { [json] in $0.write(json: json) })
      let status = try await session.run(stops: stops)
      if status != 0 { throw ExitCode(status) }
    }
  }

  /// Returns what is to be done, from the options, the settings and the manifest.
  func options(environment: [String: String]) throws -> WrapSession.Options {
    let home = environment["HOME"] ?? NSHomeDirectory()
    let folders = UserFolders(environment: environment, home: home)
    let settings = try WrapSettings.read(in: folders.settings)
    let name = game ?? command.first.map { URL(fileURLWithPath: $0).lastPathComponent } ?? ""
    let folderName = GameFolderName.of(name)
    let areas = try SaveArea.areas(of: places(environment, home: home, folders: folders, settings: settings))
    let state = self.state ?? folders.data.appendingPathComponent("games/" + folderName, isDirectory: true).path
    for area in areas where area.overlaps(state) {
      throw CommandFailure(
        .data, "the game's saves and Keepsake's own folder \(state) contain each other",
        next: "name a smaller folder with --saves")
    }
    let choice =
      try conflict
      ?? settings.conflict.map { text in
        guard let choice = ConflictChoice(rawValue: text) else {
          throw CommandFailure(.usage, "the setting \"conflict\" is ask, mine, theirs or both, not \"\(text)\"")
        }
        return choice
      }
    return WrapSession.Options(
      game: name, command: RawArguments.bytes(of: command), areas: areas, state: state,
      cloud: try location(settings, folderName: folderName, home: home),
      showsPairingCode: target.pair, conflict: choice ?? .ask,
      wait: .seconds(
        min(max(wait ?? settings.wait ?? Self.usualSeconds, Self.seconds.lowerBound), Self.seconds.upperBound)),
      intervalMilliseconds: watch.interval, settleMilliseconds: watch.settle)
  }

  /// Each game has a folder of its own in the shared one.
  private func location(_ settings: WrapSettings, folderName: String, home: String) throws -> SyncLocation? {
    var target = target
    if target.shared == nil, target.cloud == nil {
      if target.join == nil, !target.pair { target.shared = settings.folder }
      if target.shared == nil {
        target.cloud = settings.cloud
        target.appKey = target.appKey ?? settings.appKey
      }
    }
    switch try target.location() {
    case .folder(let shared):
      let path = shared.relativePath.hasPrefix("~/") ? home + shared.relativePath.dropFirst() : shared.path
      return .folder(
        URL(fileURLWithPath: path, isDirectory: true).appendingPathComponent(folderName, isDirectory: true))
    case let other: return other
    }
  }

  private func places(
    _ environment: [String: String], home: String, folders: UserFolders, settings: WrapSettings
  ) throws -> [SavePlace] {
    let install = GameInstall(command: command, environment: environment)
    func tokens(_ manifest: GameManifest?) -> SavePlaces {
      let base = self.base.map(Self.absolute) ?? install.base(folders: manifest?.folders ?? [])
      return SavePlaces(
        platform: .current, environment: environment, home: home, user: NSUserName(), base: base, root: install.root,
        game: base.map { URL(fileURLWithPath: $0).lastPathComponent }, storeGameID: manifest?.steamID,
        winePrefix: winePrefix.map(Self.absolute) ?? install.winePrefix)
    }
    guard saves.isEmpty else {
      let tokens = tokens(nil)
      return try saves.flatMap { text in
        let path = text == "~" || text.hasPrefix("~/") ? home + text.dropFirst() : text
        // What exists under this very name has no wildcards in it.
        let isLiteral =
          !path.hasPrefix("<")
          && (FileManager.default.fileExists(atPath: path) || !path.contains(where: "*?[<".contains))
        let places =
          isLiteral
          ? [tokens.place(literally: Self.absolute(path))]
          : try tokens.places(of: path.hasPrefix("<") ? path : Self.rooted(path))
        for place in places where place.hasReservedName {
          throw CommandFailure(
            .data, "nothing in \(text) is kept: names like \(SavePath.reservedName) are Keepsake's own",
            next: "name the folder in which the game keeps its saves")
        }
        return places
      }
    }
    let file =
      (manifest ?? settings.manifest).map { URL(fileURLWithPath: Self.absolute($0)) }
      ?? folders.settings.appendingPathComponent(WrapSettings.manifestName)
    guard let bytes = try AtomicFile.read(file, maximumBytes: GameManifest.maximumBytes) else {
      throw GameManifestError(
        .missing, "there is no manifest", at: file.path,
        next: "put one there, name one with --manifest, or name the folder of the saves with --saves")
    }
    let found = try GameManifest.find(game ?? "", in: bytes)
    let places = try found.places(in: tokens(found), store: store ?? install.store)
    guard !places.isEmpty else {
      throw GameManifestError(
        .unknownGame, "the manifest says nothing about the game's saves on this system", at: game,
        next: "name the folder of its saves with --saves")
    }
    return places
  }

  /// Returns the absolute path of a path in the current folder, as it is written.
  private static func rooted(_ path: String) -> String {
    path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
  }

  /// Returns the absolute path of a path in the current folder, without `.` and `..`. As for the system, what is above
  /// a link is above the folder that it leads to.
  static func absolute(_ path: String) -> String {
    var names: [String] = []
    func folder() -> String { "/" + names.joined(separator: "/") }
    for name in rooted(path).split(separator: "/").map(String.init) where name != "." {
      guard name == ".." else {
        names.append(name)
        continue
      }
      if isLink(folder()) {
        names = URL(fileURLWithPath: folder()).resolvingSymlinksInPath().path.split(separator: "/").map(String.init)
      }
      _ = names.popLast()
    }
    return folder()
  }

  private static func isLink(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
  }
}

extension ConflictChoice: ExpressibleByArgument {}
#endif
