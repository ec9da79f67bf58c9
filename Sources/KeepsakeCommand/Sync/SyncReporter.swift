#if Cloud
import Foundation
import KeepsakeMirror
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

/// Reports what a sync does: sentences for people, lines of JSON for programs.
final class SyncReporter {
  private struct Line: Encodable {
    var event: String
    var path: String?
    var version: String?
    var bytes: Int?
    var winner: String?
    var losers: [String]?
    var related: Bool?
    var item: String?
    var message: String?
    var pairingCode: String?
    var expiresInMilliseconds: Int?
    var recoveryCode: String?
    var stateFolder: String?
    var sharedFolder: String?
    var device: String?
    var player: String?
    var container: String?
    var deviceNames: [String]?
  }

  /// The last line.
  struct End: Encodable {
    var event = "end"
    var captured = 0
    var deleted = 0
    var placed = 0
    var removed = 0
    var rescued = 0
    var conflicts = 0
    var issues = 0
    /// Files that could not be read or written in the last pass over the folder.
    var troubled = 0
    /// Commits that the cloud isn't certain to have.
    var waitingCommits = 0
    /// What went over the wire: bodies of requests, and of responses and events. Nil if there is no wire.
    var sentBytes: Int64?
    var receivedBytes: Int64?

    init(_ counts: MirrorCounts) {
      captured = counts.captured
      deleted = counts.deleted
      placed = counts.placed
      removed = counts.removed
      rescued = counts.rescued
      conflicts = counts.conflicts
      issues = counts.issues
    }
  }

  private let json: Bool
  private let write: (String) -> Void
  private let progress: ProgressLine
  private var lastPhase: SyncStatus.Phase?

  /// Passes its lines to `write`.
  ///
  /// - Parameter showsProgress: Whether programs get the progress, on standard error; people always do.
  init(json: Bool, showsProgress: Bool = false, write: @escaping (String) -> Void = Output.text) {
    self.json = json
    self.write = write
    progress = ProgressLine(json: json, quiet: json && !showsProgress)
  }

  /// Reports the progress of a pass over the folder.
  func looking(_ done: Int, of all: Int) {
    // Thousands of small files take less time than to say so of each.
    guard done.isMultiple(of: 50) else { return }
    progress.update("checked \(done) of \(CountText.of(all, "file"))")
  }

  /// Reports what opening the store had to repair: to people on standard error, whatever the command does.
  func repaired(_ store: Store) {
    guard json else { return StoreInput.announce(store) }
    for incident in store.incidents { emit(Line(event: "repaired", message: incident.message), "") }
  }

  func ready(folder: String, state: String, credentials: CloudCredentials) {
    emit(
      Line(
        event: "ready", path: folder, stateFolder: state, device: credentials.device.description,
        player: credentials.player.description),
      "syncing \(Printable.text(folder)) with \(credentials.url.absoluteString)")
  }

  func ready(folder: String, state: String, shared: String, container: ContainerID) {
    emit(
      Line(
        event: "ready", path: folder, stateFolder: state, sharedFolder: shared, container: container.description),
      "syncing \(Printable.text(folder)) with the folder \(Printable.text(shared))")
  }

  func pairing(_ code: PairingCode) {
    emit(
      Line(event: "pairing", pairingCode: code.code, expiresInMilliseconds: code.expiresInSeconds * 1_000),
      """
      pairing code: \(Printable.text(code.code))  (valid for \(code.expiresInSeconds / 60) minutes and one device; \
      there: --join \(Printable.text(code.code)))
      """)
  }

  func recovery(_ code: RecoveryCode) {
    emit(
      Line(event: "recovery", recoveryCode: code.text),
      """
      recovery code: \(code.text)
      Write it down, and don't keep it on this machine. It is shown only once. It gives access to all of your saves, \
      and replaces any earlier code.
      """)
  }

  func report(_ event: MirrorEvent) {
    switch event {
    case .captured(let path, let version, let bytes):
      emit(
        .init(event: "captured", path: path.text, version: version.description, bytes: bytes),
        "kept      \(shown(path))  \(Printable.size(Int64(bytes)))")
    case .deleted(let path, let version):
      emit(
        .init(event: "deleted", path: path.text, version: version.description),
        "deleted   \(shown(path))  (its history stays)")
    case .placed(let path, let version, let bytes):
      emit(
        .init(event: "placed", path: path.text, version: version.description, bytes: bytes),
        "received  \(shown(path))  \(Printable.size(Int64(bytes)))")
    case .removed(let path, let version):
      emit(
        .init(event: "removed", path: path.text, version: version.description),
        "removed   \(shown(path))  (deleted on another device; its history stays)")
    case .rescued(let path, let version, let bytes):
      emit(
        .init(event: "rescued", path: path.text, version: version.description, bytes: bytes),
        "kept      \(shown(path))  \(Printable.size(Int64(bytes)))  (changed while it was being replaced)")
    case .conflict(let path, let winner, let losers, let related):
      emit(
        .init(
          event: "conflict", path: path.text, winner: winner.description, losers: losers.map(\.description),
          related: related),
        "CONFLICT  \(shown(path))  \(winner) wins; in the history: \(losers.map(\.description).joined(separator: ", "))"
      )
    case .issue(let issue):
      emit(
        .init(event: "issue", path: issue.path, message: issue.message),
        "skipped   \(Printable.text(issue.path)): \(Printable.text(issue.message))")
    }
  }

  func seen(_ sighting: SeenByTracker.Sighting) {
    let names = sighting.devices.map { $0.isEmpty ? "a device without a name" : Printable.text($0) }
    emit(
      .init(
        event: "seen", path: sighting.path.text, version: sighting.version.description, deviceNames: sighting.devices),
      "seen      \(shown(sighting.path))  by \(names.joined(separator: ", "))")
  }

  func refused(_ refusals: [Refusal]) {
    for refusal in refusals {
      emit(
        .init(event: "refused", item: refusal.item, message: refusal.message),
        "REFUSED   \(Printable.text(refusal.item)): \(Printable.text(refusal.message))")
    }
  }

  func moneyLost(_ lost: LostMoney) {
    let amounts = lost.amounts.sorted { $0.key < $1.key }.map { "\($1) \($0)" }.joined(separator: ", ")
    let message = "the bank of an earlier player doesn't pay \(amounts): it has removed this device, or lost its data"
    emit(.init(event: "moneyLost", message: message), "LOST      \(Printable.text(message))")
  }

  func damaged(_ hash: ContentHash) {
    emit(
      .init(event: "damaged", message: "the content \(hash) arrived damaged, or the cloud no longer has it"),
      "DAMAGED   the content \(hash) arrived damaged, or the cloud no longer has it; it is requested again")
  }

  /// Reports the progress of the work and, once, what holds it up.
  func report(_ status: SyncStatus, files: Int) {
    defer { lastPhase = status.phase }
    switch status.phase {
    case .waiting(let failure), .halted(let failure):
      progress.end()
      if !isSameTrouble(status.phase) {
        emit(.init(event: "offline", message: failure.message), "waiting   \(Printable.text(failure.message))")
      }
    case .storeFailed(let message):
      progress.end()
      if lastPhase != status.phase {
        emit(.init(event: "offline", message: message), "waiting   the store: \(Printable.text(message))")
      }
    case .busy:
      progress.update(Self.progressText(status, files: files))
    case .stopped, .paused, .idle:
      files > 0 ? progress.update(Self.progressText(status, files: files)) : progress.end()
    }
  }

  func end(_ end: End) {
    progress.end()
    let done =
      """
      kept \(end.captured), deleted \(end.deleted), received \(end.placed), removed \(end.removed), conflicts \
      \(end.conflicts)
      """
    var wire = ""
    if let sent = end.sentBytes, let received = end.receivedBytes {
      wire = "; sent \(Printable.size(sent)), received \(Printable.size(received)) over the network"
    }
    let owed =
      end.waitingCommits > 0 ? "; \(CountText.of(end.waitingCommits, "commit")) waiting to be sent or confirmed" : ""
    let trouble = end.troubled > 0 ? "; \(CountText.of(end.troubled, "file")) could not be synced" : ""
    write(json ? Output.json(end) : "\(done)\(wire)\(owed)\(trouble)")
  }

  private func isSameTrouble(_ phase: SyncStatus.Phase) -> Bool {
    switch (phase, lastPhase) {
    case (.waiting(let new), .waiting(let old)), (.halted(let new), .halted(let old)): new.kind == old.kind
    default: false
    }
  }

  private static func progressText(_ status: SyncStatus, files: Int) -> String {
    var parts: [String] = []
    for (direction, words) in [(SyncTransfer.Direction.up, "sending"), (.down, "receiving")] {
      let transfers = status.transfers.filter { $0.direction == direction }
      guard !transfers.isEmpty else { continue }
      let (done, all) = transfers.reduce((0, 0)) { ($0.0 + $1.bytesDone, $0.1 + $1.bytesInAll) }
      parts.append("\(words) \(Printable.size(done)) of \(Printable.size(all))")
    }
    if files > 0 { parts.append("\(CountText.of(files, "file")) in transfer") }
    if status.waitingCommits > 0 { parts.append("\(CountText.of(status.waitingCommits, "commit")) to send") }
    return parts.isEmpty ? "syncing with the cloud" : parts.joined(separator: ", ")
  }

  private func shown(_ path: SavePath) -> String { Printable.text(path.text) }

  private func emit(_ line: Line, _ text: String) {
    progress.end()
    write(json ? Output.json(line) : text)
  }
}
#endif
