#if Cloud
import Foundation
import KeepsakeMirror
import KeepsakePlatform
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync
/// One run of `keepsake sync`: a mirror of the folder on one side, a sync service on the other, the store between them.
final class SyncSession {
  struct Options {
    var folder: String
    var state: String?
    var cloud: SyncLocation
    var showsPairingCode: Bool
    /// Makes a recovery code and shows it.
    var makesRecoveryCode = false
    var once: Bool
    var intervalMilliseconds: Int
    var settleMilliseconds: Int
    /// How often the cloud is asked which other devices have what was kept here. Devices report it once a minute.
    var seenMilliseconds = 30_000
  }

  /// What other tasks have left for the loop.
  private struct Letters {
    var slots: Set<String> = []
    var refusals: [Refusal] = []
    var damaged: [ContentHash] = []
    var lostMoney: [LostMoney] = []
    var seen: [SeenByTracker.Sighting] = []
    /// It is never taken back.
    var stop = false
  }

  /// Every slot is compared again after this many passes over the folder: notifications may be dropped, but the store
  /// has the truth.
  private static let passesBetweenReviews = 100
  /// The most passes over the folder before the first contact with the cloud: a game that writes without end must not
  /// hold it up.
  private static let firstPasses = 100
  /// How long `--once` waits for a file that another program changes all the time.
  private static let patience = Duration.seconds(10)

  private let options: Options
  private let reporter: SyncReporter
  private let store: Store
  private let mirror: FolderMirror
  private let way: SyncWay
  private let service: SyncService<Store>
  private let inbox = Inbox(Letters())
  private let seenByTracker = SeenByTracker()
  private var passes = 0
  private var lastPass = FolderMirror.Pass()
  /// The paths in the folder of which something was said: each only once, however many passes try them.
  private var issuePaths: Set<String> = []
  private var patience: SettlePatience

  private func takeLetters() -> Letters { inbox.take { Letters(stop: $0.stop) } }

  /// Opens the folder and its state, and finds or creates the connection to the cloud.
  static func open(_ options: Options, reporter: SyncReporter) async throws -> SyncSession {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: options.folder, isDirectory: &isFolder), isFolder.boolValue else {
      throw CommandFailure(.noInput, "there is no folder \(options.folder)", next: "create it first; it may be empty")
    }
    let state = try SyncState(folder: options.folder, named: options.state)
    let store = try Store.open(at: state.url)
    reporter.repaired(store)
    let saves = URL(fileURLWithPath: options.folder, isDirectory: true)
    let way = try await SyncWay.open(options.cloud, apartFrom: [saves], state: state, store: store)
    let session = try SyncSession(options, reporter, store, state, way)
    switch (options.cloud, way.credentials) {
    case (.folder(let shared), _):
      reporter.ready(
        folder: options.folder, state: state.url.relativePath, shared: shared.relativePath, container: way.container)
    case (.server, let credentials?):
      reporter.ready(folder: options.folder, state: state.url.relativePath, credentials: credentials)
      try await showRecoveryCode(options, way.recoveryCode, credentials, state, reporter)
      if options.showsPairingCode { reporter.pairing(try await HTTPAccount.pairingCode(for: credentials)) }
    case (.server, nil): break
    }
    return session
  }

  /// Shows the recovery code that was asked for, or one that is in force and that an earlier run didn't show. It is
  /// forgotten once it was shown.
  ///
  /// - Parameter fresh: The code in force, if the device has just come back.
  private static func showRecoveryCode(
    _ options: Options, _ fresh: RecoveryCode?, _ credentials: CloudCredentials, _ state: SyncState,
    _ reporter: SyncReporter
  ) async throws {
    var code = fresh
    if options.makesRecoveryCode {
      code = try await newCode(credentials, state)
    } else if try code == nil && state.hasUnseenCodes() {
      guard let facts = await recoveryFacts(credentials) else { return }
      code = try state.unseenCode(facts.digest)
      if code == nil { return try state.forgetOwnCodes() }
    }
    guard let code else { return }
    reporter.recovery(code)
    if Output.isWhole { return try state.forgetOwnCodes(and: code) }
    // A pipe whose reader is gone is nothing to speak of, except for what is shown once.
    guard Output.hasReader else {
      throw CommandFailure(
        .io, "nobody has read the recovery code", next: "run keepsake sync on this folder again: it shows the code")
    }
  }

  /// Returns what the server knows of the player's recovery code; nil if it can't be asked now, or knows no codes.
  private static func recoveryFacts(_ credentials: CloudCredentials) async -> RecoveryFacts? {
    do {
      return try await HTTPAccount.recovery(for: credentials)
    } catch {
      return nil  // The next run asks again; what is wrong with the connection, the sync says.
    }
  }

  /// Makes a code the player's, in place of any earlier one. It is kept before the server knows it.
  private static func newCode(_ credentials: CloudCredentials, _ state: SyncState) async throws -> RecoveryCode {
    let code = try state.newCode(at: credentials.url)
    do {
      try await HTTPAccount.setRecoveryCode(code, for: credentials)
    } catch {
      var failure = CommandFailure(error)
      if failure.kind == .unavailable {
        failure.next = "run it again with --new-recovery-code: a code from before may be void now"
      }
      throw failure
    }
    return code
  }

  private init(
    _ options: Options, _ reporter: SyncReporter, _ store: Store, _ state: SyncState, _ way: SyncWay
  ) throws {
    self.options = options
    self.reporter = reporter
    self.store = store
    var settings = FolderMirror.Settings()
    settings.settleMilliseconds = Int64(options.settleMilliseconds)
    settings.device = DeviceName.current
    let mirror = try FolderMirror(path: options.folder, state: state.url.path, store: store, settings: settings)
    // After the mirror was opened, since from then on it notices if another folder takes the folder's place, and before
    // its first pass, which treats what isn't there as deleted.
    try FolderBinding(folder: options.folder, state: state.url)?.settle(for: mirror)
    self.mirror = mirror
    self.way = way
    patience = SettlePatience(Self.patience, watch: (options.intervalMilliseconds, options.settleMilliseconds))
    service = SyncService(store: store, transport: way.transport, container: way.container)
  }

  /// Syncs until it is stopped or, with `once`, until nothing is left to sync.
  func run(stop: AsyncStream<Int32>) async throws {
    let tasks = startTasks(stop: stop)
    defer {
      for task in tasks { task.cancel() }
    }
    mirror.progress = { [reporter] in reporter.looking($0, of: $1) }
    mirror.committed = { [service] in service.committed() }
    var failure: (any Error)?
    var isSynced = false
    do {
      try await firstLook()
      if !takeLetters().stop {
        try await service.start()
        if options.once { isSynced = try await syncOnce() } else { try await syncOn() }
      }
    } catch {
      failure = error
    }
    let waiting = service.status.waitingCommits
    await service.stop()
    do {
      try close(waiting: waiting)
    } catch {
      // Why it ended matters more than what followed from that.
      throw failure.map(options.cloud.explained) ?? error
    }
    if let failure { throw options.cloud.explained(failure) }
    if options.once, !isSynced {
      throw CommandFailure(
        .temporary, "stopped before everything was synced",
        next: "nothing is lost: the rest will be synced at the next run")
    }
    if options.once, lastPass.troubled > 0 {
      throw CommandFailure(
        isDenied ? .permission : .io, "\(CountText.of(lastPass.troubled, "file")) could not be synced",
        next: "the lines above say why")
    }
  }

  private func close(waiting: Int) throws {
    var end = SyncReporter.End(mirror.counts)
    end.troubled = lastPass.troubled
    end.waitingCommits = max(waiting, try store.read { try $0.outboxCount() })
    end.sentBytes = way.traffic?.bytesSent
    end.receivedBytes = way.traffic?.bytesReceived
    reporter.end(end)
    try store.close()
  }

  /// Keeps what is in the folder before the first fetch. So it is recognized as files from before the first sync, which
  /// never silently replace what other devices have.
  private func firstLook() async throws {
    guard try !store.read({ try $0.facts().caughtUp }) else { return }
    for _ in 0..<Self.firstPasses {
      guard try !lookPatiently(), !takeLetters().stop, !patience.isOver else { return }
      // Only files that have to stay unchanged for a while need time.
      if lastPass.unsettled > 0 { try await pause() }
    }
  }

  private func syncOn() async throws {
    for await _ in inbox.wakes {
      if try take() { return }
      try look()
      let status = service.status
      reporter.report(status, files: lastPass.unsettled)
      // Nothing continues by itself then: the user has to know.
      if case .halted(let failure) = status.phase { throw failure }
    }
  }

  /// Returns whether everything was synced; if not, it was stopped.
  private func syncOnce() async throws -> Bool {
    while true {
      // Nothing moved, then the cloud had nothing new, then still nothing moved.
      while true {
        if try take() { return false }
        if try lookPatiently() || patience.isOver { break }
        if lastPass.unsettled > 0 { try await pause() }
        reporter.report(service.status, files: lastPass.unsettled)
      }
      let isOver = patience.isOver
      do {
        try await service.sync()
      } catch SyncError.refused(let refusals) {
        reporter.refused(refusals)
        throw CommandFailure(
          .data, "the cloud refused \(CountText.of(refusals.count, "item"))",
          next: "the lines above say why; everything else is synced"
        )
      } catch SyncError.notRunning {
        // Stopped meanwhile.
        return false
      }
      if try take() { return false }
      try mirror.doubtEverything()
      // The cloud may have taken its time.
      patience.restart()
      if try lookPatiently() { return true }
      guard !isOver else {
        throw CommandFailure(
          .temporary,
          "\(CountText.of(lastPass.unsettled, "file")) can't be synced yet: another program is writing there",
          next: "everything else is synced; run the command again")
      }
    }
  }

  /// Makes one pass, which restarts the patience if it did something.
  private func lookPatiently() throws -> Bool {
    let isQuiet = try look()
    if lastPass.events.allSatisfy(\.isIssue) { patience.looked() } else { patience.restart() }
    return isQuiet
  }

  /// Makes one pass over the folder; returns whether nothing moved.
  @discardableResult
  private func look() throws -> Bool {
    passes += 1
    if passes % Self.passesBetweenReviews == 0 { try mirror.doubtEverything() }
    let pass = try mirror.run()
    pass.events.forEach(reporter.report)
    pass.events.forEach(seenByTracker.note)
    if !pass.events.allSatisfy(\.isIssue) { service.committed() }
    for case .issue(let issue) in pass.events { issuePaths.insert(issue.path) }
    lastPass = pass
    return pass.isQuiet
  }

  /// Whether the system doesn't let this user read one of the files that could not be synced.
  private var isDenied: Bool {
    issuePaths.contains { path in
      access(options.folder + "/" + path, R_OK) != 0 && CommandFailure.Kind(errno: errno) == .permission
    }
  }

  /// Takes what other tasks have left; returns whether to stop.
  private func take() throws -> Bool {
    let letters = takeLetters()
    try mirror.doubt(slots: letters.slots.sorted())
    reporter.refused(letters.refusals)
    letters.damaged.forEach(reporter.damaged)
    letters.lostMoney.forEach(reporter.moneyLost)
    letters.seen.forEach(reporter.seen)
    return letters.stop
  }

  private func pause() async throws {
    try await Task.sleep(for: lastPass.pause(atMost: options.intervalMilliseconds))
  }

  private func startTasks(stop: AsyncStream<Int32>) -> [Task<Void, Never>] {
    let inbox = inbox
    let service = service
    let notifications = service.notifications
    let interval = Duration.milliseconds(options.intervalMilliseconds)
    let (transport, seenByTracker, seenPause) = (
      way.transport, seenByTracker, Duration.milliseconds(options.seenMilliseconds)
    )
    return [
      Task {
        for await _ in stop {
          inbox.post { $0.stop = true }
          // Ends the waiting for the cloud.
          await service.pause()
        }
      },
      Task {
        while !Task.isCancelled {
          inbox.post()
          do { try await Task.sleep(for: interval) } catch { return }
        }
      },
      Task {
        while !Task.isCancelled {
          do { try await Task.sleep(for: seenPause) } catch { return }
          let versions = seenByTracker.versions
          guard !versions.isEmpty else { continue }
          do {
            let seen = seenByTracker.take(try await transport.devices(having: versions) ?? [])
            if !seen.isEmpty { inbox.post { $0.seen += seen } }
          } catch {
            // The sync reports what is wrong with the cloud. The cloud is asked again.
            continue
          }
        }
      },
      Task {
        for await item in notifications {
          inbox.post { letters in
            switch item {
            case .slots(let slots): letters.slots.formUnion(slots)
            case .refused(let refusals): letters.refusals += refusals
            case .damaged(let hash): letters.damaged.append(hash)
            case .moneyLost(let lost): letters.lostMoney.append(lost)
            case .cells, .wallet, .decisions, .acknowledged, .caughtUp, .moneyOutOfReach: break
            }
          }
        }
      },
    ]
  }
}
#endif
