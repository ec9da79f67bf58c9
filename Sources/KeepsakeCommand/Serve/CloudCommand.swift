#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeServer
import Synchronization

/// `keepsake cloud`: backups of a cloud's data folder.
struct CloudCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cloud",
    abstract: "Back up a cloud's data, verify a backup, and restore it.",
    discussion: """
      A backup is one file with the database, contents and keys of one moment. keepsake serve may be running. \
      The file contains all players' data and the secret that signs tokens: protect it like the data folder. A cloud in \
      PostgreSQL is backed up by that database's own tools.
      """,
    subcommands: [CloudBackupCommand.self, CloudVerifyCommand.self, CloudRestoreCommand.self])
}

/// `keepsake cloud backup`: copies a data folder into one file.
struct CloudBackupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup", abstract: "Copy a cloud's data into one file, while it runs.",
    discussion: """
      The file appears when it is whole, has been read back, and is on the disk. While it is written, its folder needs \
      room for it and once more for the database.
      """,
    examples: [
      "keepsake cloud backup --data cloud --to /backups/cloud-$(date +%F).tar"
    ])

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("The folder of the cloud's data, as for keepsake serve.", valueName: "folder"),
    completion: .directory)
  var data: String

  @Option(name: .long, help: ArgumentHelp("The file to write.", valueName: "file"), completion: .file())
  var to: String

  @Flag(name: .shortAndLong, help: "Replace the file if there is one.")
  var force = false

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      let folder = try FolderArgument.url(data)
      try CloudFolder.check(folder)
      // What the folder has would be taken for the cloud.
      if try CloudDatabaseOptions.address(nil) != nil {
        throw CommandFailure(
          .usage, "KEEPSAKE_DATABASE names a PostgreSQL database, which this command doesn't back up",
          next: """
            back up the database by its own tools, such as pg_dump, after it the folder or bucket of large contents, \
            and the small files of the data folder; for a cloud in the folder alone, unset KEEPSAKE_DATABASE
            """)
      }
      try OutputFile.check(to, mayReplace: force, apartFrom: [folder])
      let summary = try BackupRun.watching(json: json) { progress in
        try CloudBackup.make(
          of: folder, to: URL(fileURLWithPath: to), replacing: force,
          progress: progress)
      }
      if json { return try Output.document(BackupRun.Answer(path: data, output: to, summary)) }
      Output.text("backed up \(Printable.text(data)) to \(Printable.text(to)): \(BackupRun.text(summary))")
    }
  }
}

/// `keepsake cloud verify`: reads a backup.
struct CloudVerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify", abstract: "Read a backup from its first byte to its last, and check that it is whole.",
    examples: [
      "keepsake cloud verify --from /backups/cloud-2026-11-26.tar"
    ])

  @Option(name: .long, help: ArgumentHelp("The backup.", valueName: "file"), completion: .file())
  var from: String

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      let summary = try BackupRun.watching(json: json) {
        try CloudBackup.verify(URL(fileURLWithPath: from), progress: $0)
      }
      if json { return try Output.document(BackupRun.Answer(path: from, summary)) }
      Output.text("\(Printable.text(from)) is whole: \(BackupRun.text(summary))")
    }
  }
}

/// `keepsake cloud restore`: makes a data folder of a backup.
struct CloudRestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore", abstract: "Make a data folder of a backup, for keepsake serve.",
    discussion: """
      The folder must be empty, or not exist. The backup is verified before anything is written. The next start of \
      keepsake serve begins a new epoch: devices notice, and send what the backup lacks; players' money is frozen \
      until they have (keepsake bank status), so keepsake bank restored isn't needed.
      """,
    examples: [
      "keepsake cloud restore --from /backups/cloud-2026-11-26.tar --data cloud"
    ])

  @Option(name: .long, help: ArgumentHelp("The backup.", valueName: "file"), completion: .file())
  var from: String

  @Option(
    name: .shortAndLong, help: ArgumentHelp("The folder to put the data into.", valueName: "folder"),
    completion: .directory)
  var data: String

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      let summary = try BackupRun.watching(json: json) { progress in
        try BackupRestore.restore(
          URL(fileURLWithPath: from), to: URL(fileURLWithPath: data, isDirectory: true), progress: progress)
      }
      if json { return try Output.document(BackupRun.Answer(path: from, output: data, summary)) }
      Output.text("restored \(Printable.text(data)) from \(Printable.text(from)): \(BackupRun.text(summary))")
      Output.text("the next start of keepsake serve begins a new epoch: devices send what the backup lacks")
    }
  }
}

/// What the three commands have in common.
enum BackupRun {
  struct Answer: Encodable {
    struct Backup: Encodable {
      var madeAt: String
      var madeAtMilliseconds: Int64
      var fileBytes: Int64
      var databaseBytes: Int64
      var contentCount: Int
      var contentBytes: Int64
      var lostContentCount: Int
    }
    /// What was read: the cloud's data folder, or the backup.
    var path: String
    /// What was written: the backup, or the cloud's data folder; nil if nothing was.
    var output: String?
    var backup: Backup

    init(path: String, output: String? = nil, _ summary: BackupSummary) {
      (self.path, self.output) = (path, output)
      backup = Backup(
        madeAt: TimeText.iso(milliseconds: summary.madeAtMilliseconds),
        madeAtMilliseconds: summary.madeAtMilliseconds, fileBytes: summary.fileBytes,
        databaseBytes: summary.databaseBytes, contentCount: summary.contents, contentBytes: summary.contentBytes,
        lostContentCount: summary.lostContents)
    }
  }

  /// Runs `body`, shows its progress, and ends it in good order when a signal asks for that.
  static func watching(json: Bool, _ body: (BackupProgress.Receiver) throws -> BackupSummary) throws -> BackupSummary {
    let stop = Stop()
    let signals = StopSignals { _ in stop.request() }
    defer { withExtendedLifetime(signals) {} }
    let line = ProgressLine(json: json)
    let summary = try body { progress in
      guard !stop.isRequested else { throw CancellationError() }
      line.update(text(progress))
    }
    line.clear()
    return summary
  }

  private final class Stop: Sendable {
    private let state = Atomic(false)
    var isRequested: Bool { state.load(ordering: .relaxed) }
    func request() { state.store(true, ordering: .relaxed) }
  }

  static func text(_ summary: BackupSummary) -> String {
    let parts = [
      Printable.size(summary.fileBytes), "database \(Printable.size(summary.databaseBytes))",
      CountText.of(summary.contents, "large content"),
      summary.lostContents > 0 ? "\(summary.lostContents) more were lost before" : "",
      "of \(TimeText.iso(milliseconds: summary.madeAtMilliseconds))",
    ]
    return parts.filter { !$0.isEmpty }.joined(separator: ", ")
  }

  private static func text(_ progress: BackupProgress) -> String {
    let step =
      switch progress.step {
      case .contents: "copying large contents"
      case .database: "copying the database"
      case .verifying: "verifying"
      case .restoring: "writing"
      }
    let total = progress.totalBytes.map { " of \(Printable.size($0))" } ?? ""
    return "\(step): \(Printable.size(progress.doneBytes))\(total)"
  }
}
#endif
