import KeepsakeReplication
import KeepsakeSync

/// Keeps up to date which devices have the saves whose status is observed.
///
/// Asks within 30 seconds after somebody has started to observe a slot or an observed save has reached the cloud, and
/// then every 30 seconds: immediately about a slot that it hasn't asked about since the last pause ended, otherwise at
/// the end of the current pause. Asks nothing while nobody observes a slot or the cloud can't be reached. All slots go
/// into as few requests as possible.
actor SeenByMonitor {
  /// Other devices report what they have once a minute if they have nothing else to send. Asking more often would get
  /// the same response.
  static let pause: Duration = .seconds(30)

  private nonisolated let executor: QueueExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let core: GameCore
  private let transport: any Transport
  /// Slots that were asked about since the last pause ended.
  private var asked: Set<String> = []
  private var isAsking = false
  private var ticking: Task<Void, Never>?
  private var pausing: Task<Void, Never>?

  init(core: GameCore, transport: any Transport, executor: QueueExecutor) {
    self.core = core
    self.transport = transport
    self.executor = executor
  }

  func start() {
    let ticks = core.events.statusTicks.stream(beginningWith: ())
    ticking = Task { for await _ in ticks { await self.look() } }
  }

  func stop() {
    ticking?.cancel()
    pausing?.cancel()
    (ticking, pausing) = (nil, nil)
  }

  private func look() async {
    guard !isAsking, ticking != nil, isReached else { return }
    let due = core.seen.slots.subtracting(asked)
    guard !due.isEmpty else { return }
    let question: SeenByQuery
    do {
      question = try core.store.read { try SeenByQuery(due, in: $0) }
    } catch {
      // Not reported here: the observers of the slot's status read the same store and get the error.
      return
    }
    guard !question.isEmpty else { return }
    isAsking = true
    defer { isAsking = false }
    asked.formUnion(question.heads.keys)
    pauseUnlessPausing()
    do {
      let answers = try await question.answers { [transport] in try await transport.devices(having: $0) }
      guard ticking != nil else { return }
      core.seen.note(answers)
      core.events.statusDidChange()
    } catch {
      // Asked again after the pause; the cloud's status shows what is wrong.
    }
  }

  private func pauseUnlessPausing() {
    guard pausing == nil else { return }
    pausing = Task {
      do { try await self.core.environment.sleep(Self.pause) } catch { return }
      await self.pauseEnded()
    }
  }

  private func pauseEnded() async {
    pausing = nil
    asked = []
    await look()
  }

  private var isReached: Bool {
    switch core.cloud.status.phase {
    case .upToDate, .syncing: true
    case .off, .paused, .connecting, .waiting, .refused, .storeFailed: false
    }
  }
}
