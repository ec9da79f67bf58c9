#if Cloud
import ArgumentParser
import Foundation
import KeepsakeSync

/// `keepsake sync`: keeps a folder of save files the same on every device.
struct SyncCommand: AsyncParsableCommand, PrintsLines {
  static let jsonForm = JSONForm.lines

  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Keep a folder of save files the same on every device.",
    discussion: """
      Works with the saves of any game. Each change in the folder becomes a version and is sent; changes from other \
      devices are written to the folder, whole or not at all. While it runs, it reports which other devices have the \
      versions made here. Where two devices changed the same file, one version wins, the same everywhere; the other is \
      reported and stays in the history (keepsake history, keepsake restore).

      With --cloud, the devices sync through a server. The first device registers automatically; there, --pair prints \
      a code with which the next device joins (--join). A recovery code (--new-recovery-code) brings everything back \
      to a new device after all others were lost (--recover).

      With --folder, they sync through a folder that they share: one that another program syncs (iCloud Drive, \
      Dropbox, Syncthing), or a memory stick. It has to exist, beside the saves and not inside them. The first device \
      sets it up; name the same folder on every device.

      A file whose name only some systems can have (a:b, CON) is kept and sent; a device that can't have it reports \
      that, and writes the others. Symbolic links, device files, and names that aren't UTF-8, have control characters \
      or more than 240 bytes are reported and left alone. Empty folders are not synced.
      """,
    examples: [
      "keepsake sync ~/saves --cloud http://127.0.0.1:8080 --app-key KEY --pair",
      "keepsake sync ~/saves --cloud http://127.0.0.1:8080 --app-key KEY --join CODE     # on the other device",
      "keepsake sync ~/saves --cloud http://127.0.0.1:8080 --app-key KEY --new-recovery-code",
      "keepsake sync ~/saves --cloud http://127.0.0.1:8080 --app-key KEY --recover       # on a new device",
      "keepsake sync ~/saves --folder ~/Dropbox/keepsake --once",
    ])

  @Argument(help: "The folder of save files.", completion: .directory)
  var folder: String

  @OptionGroup var target: SyncTargetOptions

  @Flag(
    name: .long,
    help: "Join your player with your recovery code, which is asked for or read from standard input, on a new device.")
  var recover = false

  @Flag(name: .long, help: "Make a recovery code, in place of any earlier one, and print it once.")
  var newRecoveryCode = false

  @Flag(name: .long, help: "Stop once nothing is left to send or receive.")
  var once = false

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Where credentials and history are kept. [default: .keepsake in the folder]", valueName: "folder"),
    completion: .directory)
  var state: String?

  @OptionGroup var watch: FolderWatchOptions

  @Flag(name: .shortAndLong, help: "Print JSON, one object per line.")
  var json = false

  func validate() throws {
    try watch.check()
    guard recover || newRecoveryCode else {
      _ = try place()
      return
    }
    guard case .server(_, _, let entry) = try place() else {
      throw ValidationError("--recover and --new-recovery-code need a server (--cloud), which knows the code.")
    }
    guard !recover || entry == .register else {
      throw ValidationError("--recover can't be used together with --join: each brings this device to a player.")
    }
  }

  private func place() throws -> SyncLocation {
    guard let place = try target.location() else {
      throw ValidationError("Name a server with --cloud and --app-key, or a shared folder with --folder.")
    }
    return place
  }

  func run() async throws {
    try await CommandRun.reporting(json: json, as: Self.jsonForm) {
      var place = try place()
      if recover, case .server(let url, let appKey, _) = place {
        place = .server(url, appKey: appKey, entry: .recovery(try RecoveryPrompt.read()))
      }
      let reporter = SyncReporter(json: json, showsProgress: true)
      let session = try await SyncSession.open(
        SyncSession.Options(
          folder: folder, state: state, cloud: place, showsPairingCode: target.pair,
          makesRecoveryCode: newRecoveryCode, once: once,
          intervalMilliseconds: watch.interval, settleMilliseconds: watch.settle),
        reporter: reporter)
      let signals = StopSignals()
      try await session.run(stop: signals.stream)
      // The signals are caught for as long as it exists.
      withExtendedLifetime(signals) {}
    }
  }
}
#endif
