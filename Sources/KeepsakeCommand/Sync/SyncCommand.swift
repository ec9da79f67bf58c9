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
      Works with the saves of any game: whatever changes in the folder is kept as a version and sent, whatever changes \
      elsewhere is written here, whole or not at all. As long as it runs it tells which other devices have what was kept here. Where two devices changed the same file, one version stands, the same \
      everywhere, and the other is told of and stays in the history (keepsake history, keepsake restore).

      With --cloud a server is between the devices. The first device registers by itself. On it, --pair prints a code; the next \
      device takes it with --join.

      With --folder it is a folder that they share and another program carries (iCloud Drive, Dropbox, Syncthing), or a stick. \
      It has to be there, beside the saves and not in them; the first device makes it theirs, and every device is given the same.

      Symbolic links, devices, and names that other systems can't have are told of and left alone. Empty folders are not \
      synced.
      """)

  @Argument(help: "The folder of save files.", completion: .directory)
  var folder: String

  @Option(name: .long, help: ArgumentHelp("The cloud's address, as keepsake serve prints it.", valueName: "url"))
  var cloud: String?

  @Option(name: .long, help: ArgumentHelp("The cloud's app key, as keepsake serve prints it.", valueName: "key"))
  var appKey: String?

  @Option(
    name: [.customLong("folder")], help: ArgumentHelp("A folder that the devices share, in place of a cloud.", valueName: "dir"),
    completion: .directory)
  var shared: String?

  @Option(name: .long, help: ArgumentHelp("Join the player of another device by the code that --pair printed there.", valueName: "code"))
  var join: String?

  @Flag(name: .long, help: "Print a code with which another device can join.")
  var pair = false

  @Flag(name: .long, help: "Stop once nothing is left to send or to receive.")
  var once = false

  @Option(
    name: .long, help: ArgumentHelp("Where credentials and history are kept. [default: .keepsake in the folder]", valueName: "folder"),
    completion: .directory)
  var state: String?

  @Option(name: .long, help: ArgumentHelp("How often the folder is looked at.", valueName: "ms"))
  var interval: Int = 300

  @Option(name: .long, help: ArgumentHelp("How long a file has to stand still before it counts as complete.", valueName: "ms"))
  var settle: Int = 300

  @Flag(name: .long, help: "Print JSON, one object a line.")
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
      guard cloud == nil, appKey == nil else { throw ValidationError("--folder stands in the place of --cloud and --app-key.") }
      guard join == nil, !pair else { throw ValidationError("A shared folder needs no code: give the other device the same --folder.") }
      return .folder(URL(fileURLWithPath: shared, isDirectory: true))
    }
    guard let cloud, let appKey else {
      throw ValidationError("Name a server with --cloud and --app-key, or a shared folder with --folder.")
    }
    guard let url = URL(string: cloud), ["http", "https"].contains(url.scheme?.lowercased() ?? ""), url.host != nil else {
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
          folder: folder, state: state, cloud: place, showsPairingCode: pair, once: once, intervalMilliseconds: interval,
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
