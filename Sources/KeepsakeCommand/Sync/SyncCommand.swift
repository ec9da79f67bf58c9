#if Cloud
import ArgumentParser
import Foundation
import KeepsakeSync

/// `keepsake sync`: keeps a folder of save files the same on every device.
struct SyncCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Keep a folder of save files the same on every device.",
    discussion: """
      Works with the saves of any game. Each change in the folder becomes a version and is sent; changes from other \
      devices are written to the folder, whole or not at all. While it runs, it reports which other devices have the \
      versions made here. Where two devices changed the same file, one version wins, the same everywhere; the other is \
      reported and stays in the history (keepsake history, keepsake restore).

      With --cloud, the devices sync through a server. The first device registers automatically; there, --pair prints \
      a code with which the next device joins (--join).

      With --folder, they sync through a folder that they share: one that another program syncs (iCloud Drive, \
      Dropbox, Syncthing), or a memory stick. It has to exist, beside the saves and not inside them. The first device \
      sets it up; name the same folder on every device.

      Symbolic links, device files, and names that other systems can't have are reported and left alone. Empty folders \
      are not synced.
      """)

  @Argument(help: "The folder of save files.", completion: .directory)
  var folder: String

  @Option(name: .long, help: ArgumentHelp("The cloud's address, as keepsake serve prints it.", valueName: "url"))
  var cloud: String?

  @Option(name: .long, help: ArgumentHelp("The cloud's app key, as keepsake serve prints it.", valueName: "key"))
  var appKey: String?

  @Option(
    name: [.customLong("folder")],
    help: ArgumentHelp("A folder that the devices share, instead of a cloud.", valueName: "dir"),
    completion: .directory)
  var shared: String?

  @Option(
    name: .long,
    help: ArgumentHelp("Join the player of another device with the code that --pair printed there.", valueName: "code"))
  var join: String?

  @Flag(name: .long, help: "Print a code with which another device can join.")
  var pair = false

  @Flag(name: .long, help: "Stop once nothing is left to send or receive.")
  var once = false

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Where credentials and history are kept. [default: .keepsake in the folder]", valueName: "folder"),
    completion: .directory)
  var state: String?

  @Option(name: .long, help: ArgumentHelp("How often the folder is checked, in milliseconds.", valueName: "ms"))
  var interval: Int = 300

  @Option(
    name: .long,
    help: ArgumentHelp(
      "How long a file has to be unchanged before it counts as complete, in milliseconds.", valueName: "ms"))
  var settle: Int = 300

  @Flag(name: .long, help: "Print JSON, one object per line.")
  var json = false

  /// The shortest and the longest sensible times: below, the disk would be read all the time; above, changes would stay
  /// unsaved for hours.
  private static let milliseconds = 10...3_600_000

  func validate() throws {
    guard Self.milliseconds.contains(interval) else { throw ValidationError("--interval takes 10 to 3600000 ms.") }
    guard Self.milliseconds.contains(settle) else { throw ValidationError("--settle takes 10 to 3600000 ms.") }
    _ = try place()
  }

  private func place() throws -> SyncLocation {
    if let shared {
      guard cloud == nil, appKey == nil else {
        throw ValidationError("--folder can't be used together with --cloud or --app-key.")
      }
      guard join == nil, !pair else {
        throw ValidationError(
          "--pair and --join are not for a shared folder: name the same --folder on the other device.")
      }
      return .folder(URL(fileURLWithPath: shared, isDirectory: true))
    }
    guard let cloud, let appKey else {
      throw ValidationError("Name a server with --cloud and --app-key, or a shared folder with --folder.")
    }
    guard let url = URL(string: cloud), ["http", "https"].contains(url.scheme?.lowercased() ?? ""), url.host != nil
    else {
      throw ValidationError("--cloud takes a URL such as http://127.0.0.1:8080.")
    }
    return .server(url, appKey: appKey, joinCode: join)
  }

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      let place = try place()
      let reporter = SyncReporter(json: json)
      let session = try await SyncSession.open(
        SyncSession.Options(
          folder: folder, state: state, cloud: place, showsPairingCode: pair, once: once,
          intervalMilliseconds: interval,
          settleMilliseconds: settle),
        reporter: reporter)
      let signals = StopSignals()
      try await session.run(stop: signals.stream)
      // The signals are caught for as long as it exists.
      withExtendedLifetime(signals) {}
    }
  }
}
#endif
