#if Cloud
import Foundation
import KeepsakeMirror
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

/// One run of `keepsake wrap`: the newest saves come first, then the game runs, and what it saved is kept and sent.
///
/// Whatever is wrong with the saves' side is said, and never keeps the game from running.
final class WrapSession {
  struct Options: Sendable {
    /// The game's name, for people.
    var game: String
    /// The game's program and its arguments; empty to sync without a game.
    var command: [[UInt8]]
    var areas: [SaveArea]
    /// The folder of the store and the credentials.
    var state: String
    var cloud: SyncLocation?
    var showsPairingCode = false
    var conflict: ConflictChoice
    /// How long the cloud may make no progress, and how long connecting to it may take.
    var wait: Duration
    var intervalMilliseconds: Int
    var settleMilliseconds: Int
  }

  /// The most passes that do something while the game doesn't run: another program that saves without end must not
  /// hold it up.
  private static let mostMoves = 100
  /// How long a file is waited for that another program changes all the time: before the game, which a person waits
  /// for, and after it, which may still be writing its last save.
  private static let patience = (before: Duration.seconds(2), after: Duration.seconds(10))
  private static let progressLook = Duration.milliseconds(100)

  private let options: Options
  private let emit: (WrapEvent) -> Void
  private let inbox: WrapInbox
  private let ask: (String) -> String?
  private var store: Store?
  private var areas: SaveAreas?
  private var service: SyncService<Store>?
  private var state: SyncState?
  private var cloud = WrapSummary.Cloud.none

  /// - Parameters:
  ///   - ask: Asks a question and returns the answer; nil if there is none.
  ///   - emit: Receives what is reported.
  init(_ options: Options, inbox: WrapInbox, ask: @escaping (String) -> String?, emit: @escaping (WrapEvent) -> Void) {
    self.options = options
    self.inbox = inbox
    self.ask = ask
    self.emit = emit
  }

  private func say(_ text: String) { emit(.notice(text)) }

  /// Runs everything, and returns the exit status: the game's, or by the signal that stopped the command before.
  ///
  /// - Parameter stops: The signals that come while no game runs.
  /// - Throws: `CommandFailure` if the game can't be started.
  func run(stops: AsyncStream<Int32>) async throws -> Int32 {
    let stopping = Task { [inbox] in
      for await number in stops { inbox.post { $0.stop = $0.stop ?? number } }
    }
    defer { stopping.cancel() }
    await attempt("the saves aren't synced this time") { try await self.prepare() }
    if let stop = inbox.current.stop {
      await close()
      return 128 + stop
    }
    guard !options.command.isEmpty else {
      await finish()
      return 0
    }
    areas?.resetCounts()
    emit(.ready(game: options.game, stateFolder: options.state))
    let end: GameProcess.End
    do {
      end = try await play()
    } catch {
      await close()
      throw error
    }
    await finish()
    return end.status
  }

  // MARK: Before

  private func prepare() async throws {
    let state = try SyncState(folder: options.state, named: options.state)
    self.state = state
    let store = try Store.open(at: state.url)
    for incident in store.incidents { emit(.repaired(incident.message)) }
    self.store = store
    let areas = SaveAreas(
      options.areas, store: store, state: state.url, settleMilliseconds: options.settleMilliseconds)
    self.areas = areas
    await startAnew(areas)
    // What is here is kept before anything comes: it is never replaced unseen.
    var patience = newPatience(Self.patience.before)
    try await settle(areas, &patience, looksAgain: false)
    let isOver = patience.isOver
    await exchange()
    if case .away(let why) = cloud { say("the cloud can't be used now (\(WrapSummary.trimmed(why)))") }
    guard inbox.current.stop == nil else { return }
    let back = try areas.bringBackGone()
    if back > 0 { emit(.putBack(back)) }
    try decide(in: areas)
    try report(outside: areas.outside())
    areas.isPlacing = true
    defer { areas.isPlacing = false }
    // The cloud may have taken its time.
    if !isOver { patience.restart() }
    try await settle(areas, &patience)
    let received = areas.counts.received - back
    if received > 0 { emit(.received(received)) }
  }

  /// Makes passes until nothing moves.
  ///
  /// - Parameter looksAgain: Whether to look once more after a pass that kept all that it found. Not if that is done
  ///   soon anyway.
  private func settle(
    _ areas: SaveAreas, _ patience: inout SettlePatience, looksAgain: Bool = true
  ) async throws {
    var before = areas.counts
    var moves = 0
    while moves < Self.mostMoves {
      guard try !areas.look(), inbox.current.stop == nil else { break }
      patience.looked()
      if areas.counts != before {
        moves += 1
        patience.restart()
      }
      before = areas.counts
      guard !patience.isOver else {
        say("\(CountText.of(areas.unsettled, "file")) can't be kept yet: another program is writing there")
        break
      }
      // Only files that have to stay unchanged for a while need time.
      guard areas.unsettled > 0 else {
        if looksAgain { continue } else { break }
      }
      try await Task.sleep(for: areas.pause(atMost: min(options.intervalMilliseconds, options.settleMilliseconds)))
    }
    service?.committed()
  }

  private func newPatience(_ least: Duration) -> SettlePatience {
    SettlePatience(least, watch: (options.intervalMilliseconds, options.settleMilliseconds))
  }

  private func report(outside paths: [String]) {
    guard let first = paths.first else { return }
    // Without a cloud, they are of an earlier run for other places.
    let origin = options.cloud == nil ? "in the history" : "of the cloud"
    say(
      """
      \(CountText.of(paths.count, "file")) \(origin) \(paths.count == 1 ? "is" : "are") outside of this game's \
      saves here and not written, such as \(Printable.text(first))
      """)
  }

  /// Decides all conflicts in one way, and says what became of them.
  private func decide(in areas: SaveAreas) throws {
    let conflicts = try areas.conflicts()
    guard !conflicts.isEmpty else { return }
    let settlement = settlement(of: conflicts.map(\.conflict))
    for (mirror, conflict) in conflicts {
      emit(.conflict(conflict.path, settlement, beside: try mirror.settle(conflict, by: settlement)))
    }
  }

  private func settlement(of conflicts: [MirrorConflict]) -> FolderMirror.Settlement {
    switch options.conflict {
    case .mine: return .mine
    case .theirs: return .theirs
    case .both: return .both
    case .ask:
      while let answer = ask(ConflictQuestion.text(options.game, conflicts)) {
        if let settlement = ConflictQuestion.settlement(of: answer) { return settlement }
      }
      // Nobody answers: nothing of either side may get lost.
      return .both
    }
  }

  // MARK: The cloud

  /// Starts sending at once to a folder that this device has just made a cloud: nothing comes from there.
  private func startAnew(_ areas: SaveAreas) async {
    guard case .folder? = options.cloud, let location = options.cloud, let store, let state else { return }
    do {
      let (service, isNew) = try await connect(location, state, store)
      self.service = service
      areas.committed = { service.committed() }
      if isNew { try await service.start() }
    } catch {
      // The exchange tries it again, and says what is wrong.
    }
  }

  /// Exchanges everything with the cloud, as far as it answers.
  private func exchange() async {
    guard let location = options.cloud, let store, let state else { return }
    do {
      if service == nil { service = try await connect(location, state, store).service }
      guard let service else { return }
      try await service.start()
      cloud = try await sync(service)
    } catch {
      let failure = CommandFailure(location.explained(error))
      // What somebody has to do for it to work again is said; what passes by itself isn't worth a second sentence.
      let advice = [.permission, .data].contains(failure.kind) ? failure.next : nil
      cloud = .away(failure.message + (advice.map { " To mend that, \($0)" } ?? ""))
    }
  }

  private func connect(
    _ location: SyncLocation, _ state: SyncState, _ store: Store
  ) async throws -> (service: SyncService<Store>, isNew: Bool) {
    if case .folder(let shared) = location {
      for area in options.areas where area.overlaps(shared.path) {
        throw CommandFailure(.usage, "the shared folder \(shared.path) and the game's saves contain each other")
      }
      // Only below a folder that is there: one that isn't may be on a disk that isn't mounted.
      let above = shared.deletingLastPathComponent().path
      guard FileManager.default.fileExists(atPath: above) else {
        throw CommandFailure(.unavailable, "there is no folder \(above)")
      }
      if try store.read({ try $0.facts().container }) == nil { try StoreFolder.create(shared) }
    }
    let way = try await Self.inTime(options.wait, inbox) {
      try await SyncWay.open(location, apartFrom: [], state: state, store: store)
    }
    if options.showsPairingCode, let credentials = way.credentials {
      let code = try await Self.inTime(options.wait, inbox) { try await HTTPAccount.pairingCode(for: credentials) }
      emit(.pairing(code))
    }
    return (SyncService(store: store, transport: way.transport, container: way.container), way.isNew)
  }

  /// Runs `body`, and cancels it after the time `wait`, or if the command is to stop.
  private static func inTime<Result: Sendable>(
    _ wait: Duration, _ inbox: WrapInbox, _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    let work = Task(operation: body)
    let limit = Task {
      let end = ContinuousClock.now + wait
      while ContinuousClock.now < end, inbox.current.stop == nil {
        do { try await Task.sleep(for: progressLook) } catch { return }
      }
      work.cancel()
    }
    defer { limit.cancel() }
    do {
      return try await work.value
    } catch  where work.isCancelled {
      throw CommandFailure(.unavailable, "no answer")
    }
  }

  private func sync(_ service: SyncService<Store>) async throws -> WrapSummary.Cloud {
    let limit = Self.startLimit(of: service, options.wait, inbox)
    defer { limit.cancel() }
    do {
      try await service.sync()
      return .synced
    } catch SyncError.refused(let refusals) {
      return .refused(refusals.count)
    } catch SyncError.notRunning {
      // It goes on in the background, while the game runs.
      if inbox.current.stop == nil { try await service.start() }
      return .away("no answer")
    }
  }

  /// Ends the waiting for the cloud once it stalls.
  private static func startLimit(
    of service: SyncService<Store>, _ wait: Duration, _ inbox: WrapInbox
  ) -> Task<Void, Never> {
    Task { if await stalls(service, wait, inbox) { await service.pause() } }
  }

  /// Returns true once the cloud has made no progress for the time `wait`, or the command is to stop; false if the task
  /// is cancelled.
  private static func stalls(_ service: SyncService<Store>, _ wait: Duration, _ inbox: WrapInbox) async -> Bool {
    var last = service.status
    var quiet = Duration.zero
    while quiet < wait, inbox.current.stop == nil {
      do { try await Task.sleep(for: progressLook) } catch { return false }
      let now = service.status
      let moved = now.transfers != last.transfers || now.waitingCommits != last.waitingCommits
      quiet = moved ? .zero : quiet + progressLook
      last = now
    }
    return true
  }

  // MARK: The game

  private func play() async throws -> GameProcess.End {
    let process = try GameProcess.start(options.command)
    GameProcess.wait(for: process) { [inbox] end in inbox.post { $0.end = end } }
    let ticks = Task { [inbox, interval = Duration.milliseconds(options.intervalMilliseconds)] in
      while !Task.isCancelled {
        inbox.post()
        do { try await Task.sleep(for: interval) } catch { return }
      }
    }
    defer { ticks.cancel() }
    var isPassedOn = false
    // What is there when the game starts was looked at just before.
    var looks = false
    for await _ in inbox.wakes {
      if let end = inbox.current.end { return end }
      // It came in the moment between the start of the game and knowing its process.
      if let stop = inbox.current.stop, !isPassedOn {
        GameSignals.pass(on: stop)
        isPassedOn = true
      }
      guard looks, let areas else {
        looks = true
        continue
      }
      await attempt("the saves aren't watched any more") {
        if try !areas.look() { self.service?.committed() }
      } failed: {
        self.areas = nil
      }
    }
    // The inbox lives as long as this.
    return .exit(CommandFailure.Kind.software.rawValue)
  }

  // MARK: After

  private func finish() async {
    await attempt("the saves can't be taken now") {
      guard let areas = self.areas else { return }
      var patience = self.newPatience(Self.patience.after)
      try await self.settle(areas, &patience)
      await self.exchange()
      self.emit(.issues(areas.takeIssues()))
      self.emit(
        .end(areas.counts, self.cloud, conflicts: try areas.conflicts().count, troubled: areas.troubled))
    }
    await close()
  }

  private func close() async {
    await service?.stop()
    await attempt("closing the store failed") { try self.store?.close() }
    (service, areas, store) = (nil, nil, nil)
  }

  /// Does something that must not keep the game from running; says why it failed.
  private func attempt(
    _ what: String, _ body: () async throws -> Void, failed: () -> Void = {}
  ) async {
    do {
      try await body()
    } catch {
      let failure = CommandFailure(error)
      say("\(what): \(Printable.text(failure.message))" + (failure.next.map { " (\($0))" } ?? ""))
      failed()
    }
  }
}
#endif
