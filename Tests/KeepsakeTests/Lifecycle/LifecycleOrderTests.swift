import Foundation
import KeepsakePlatform
import KeepsakeSimulation
import Synchronization
import TestSupport
import Testing

@testable import Keepsake

/// Games whose system announces what becomes of them, in each order that its documents allow, and that are killed right
/// after a notification.
@Suite struct LifecycleOrderTests {
  /// What a system announces. The names are those of a stand-in.
  enum Notice: String, CaseIterable {
    case sceneDeactivates, resigns, hides, entersBackground, entersForeground, becomesActive, terminates

    var name: Notification.Name { Notification.Name("test.\(rawValue)") }
    /// Whether the game may never run again after it.
    var isLast: Bool { self != .entersForeground && self != .becomesActive }
  }

  enum State { case active, inactive, background, ended }

  /// A system: what it announces when the game goes from one state to another.
  enum System: CaseIterable {
    case phone, watch, mac

    func steps(from state: State) -> [(notices: [Notice], to: State)] {
      switch (self, state) {
      case (.phone, .active):
        // With several scenes, one may leave the screen while the game stays active.
        [
          ([.sceneDeactivates, .resigns], .inactive), ([.resigns, .sceneDeactivates], .inactive),
          ([.sceneDeactivates], .active),
        ]
      case (.watch, .active): [([.resigns], .inactive)]
      case (.phone, .inactive), (.watch, .inactive): [([.becomesActive], .active), ([.entersBackground], .background)]
      case (.phone, .background): [([.entersForeground], .inactive), ([.terminates], .ended)]
      case (.watch, .background): [([.entersForeground], .inactive)]
      // A game in the background of a Mac goes on.
      case (.mac, .active): [([.resigns], .inactive), ([.hides, .resigns], .inactive), ([.terminates], .ended)]
      case (.mac, .inactive): [([], .active), ([.hides], .inactive), ([.terminates], .ended)]
      case (.mac, .background), (_, .ended): []
      }
    }

    func notifications(_ center: NotificationCenter) -> LifecycleNotifications {
      func names(_ notices: Notice...) -> [Notification.Name] { notices.map(\.name) }
      return switch self {
      case .phone:
        LifecycleNotifications(
          center: center, deactivate: names(.resigns, .sceneDeactivates), suspend: names(.entersBackground),
          resume: names(.entersForeground, .becomesActive), terminate: names(.terminates))
      case .watch:
        LifecycleNotifications(
          center: center, deactivate: names(.resigns), suspend: names(.entersBackground),
          resume: names(.entersForeground, .becomesActive))
      case .mac:
        LifecycleNotifications(center: center, deactivate: names(.resigns, .hides), terminate: names(.terminates))
      }
    }
  }

  /// Counted by several threads.
  final class Count: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .acquiring) }

    func add() { count.add(1, ordering: .acquiringAndReleasing) }
  }

  private static let volume = PreferenceKey("volume", default: 0)

  @Test(
    "whatever a system announces, and in whatever order, a game killed right after it has all that was shown",
    arguments: System.allCases)
  func killed(system: System) async throws {
    try await onThread {
      for seed in 1...TestDepth.lifecycles { try Self.play(system, seed: seed) }
    }
  }

  private static func play(_ system: System, seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    let center = NotificationCenter()
    var world = World(level: 0)
    let (asked, returned) = (Count(), Count())
    let activity = ProcessActivity(beginBackground: { _ in
      asked.add()
      return { returned.add() }
    })
    var saves = 0
    let autosave = Autosave(
      game, to: .main, every: .seconds(30), debounce: .zero, atMost: .zero, atSignals: .saveAndContinue,
      within: Patience.limit, notifications: system.notifications(center), activity: activity,
      metadata: { SaveMetadata() }, value: { world })
    var failures: [any Error] = []
    autosave.onFailure = { failures.append($0) }
    var (state, story): (State, [String]) = (.active, [])
    /// The game plays on as far as its state lets it, and shows what became of it.
    func play() throws {
      guard state != .background, !autosave.isSuspended, Bool.random(using: &random) else { return }
      world.level += 1
      if Bool.random(using: &random) { game.preferences[volume] = world.level }
      if Bool.random(using: &random) { try game.progress.record(world.level, for: .level) }
      device.clock.advance(by: .seconds(Int.random(in: 0...40, using: &random)))
      try autosave.update()
    }
    for _ in 0..<Int.random(in: 1...8, using: &random) {
      guard let step = system.steps(from: state).randomElement(using: &random) else { break }
      for notice in step.notices {
        try play()
        if notice == .terminates || (notice.isLast && !autosave.isSuspended) { saves += 1 }
        center.post(name: notice.name, object: nil)
        story.append(notice.rawValue)
        #expect(
          autosave.isSuspended == (notice == .entersBackground || (state == .background && notice == .terminates)))
        if notice.isLast { try expectAll(of: game, world, in: device, "\(system), seed \(seed): \(story)") }
      }
      state = step.to
    }
    #expect(failures.isEmpty, "\(failures)")
    #expect(asked.value == saves, "\(story)")
    // What was asked for is given back when the store has nothing to do any more.
    expectAll(asked.value, of: returned, story)
  }

  /// Expects as many and no more, within a test's patience.
  private static func expectAll(_ count: Int, of counted: Count, _ story: [String]) {
    let began = ContinuousClock.now
    while counted.value < count, .now - began < Patience.limit { Thread.sleep(forTimeInterval: 0.001) }
    #expect(counted.value == count, "\(story)")
  }

  /// A copy of the folder is what a kill would leave. Nothing writes to the store now, as everything is durable; copies
  /// of it are left out, since one may be in the making.
  private static func copy(_ device: Device) throws -> TemporaryFolder {
    let files = FileManager.default
    let copy = try TemporaryFolder("killed")
    for name in try files.contentsOfDirectory(atPath: device.url.path) where !name.hasPrefix("backup") {
      try files.copyItem(at: device.url.appending(path: name), to: copy.url.appending(path: name))
    }
    return copy
  }

  private static func expectAll(of game: GameData, _ world: World, in device: Device, _ story: String) throws {
    let copy = try copy(device)
    let later = try GameData.open("com.example.space", at: copy.url, environment: device.clock.environment)
    defer { end(later) }
    #expect(try later.saves.load(.main)?.level == world.level, "\(story)")
    #expect(later.preferences[volume] == game.preferences[volume], "\(story)")
    #expect(later.progress[.level] == game.progress[.level], "\(story)")
  }

  @Test("a notification resumes a game that a notification suspended, and not one that suspended itself")
  func resumes() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    let center = NotificationCenter()
    let autosave = Autosave(
      game, to: .main, every: .seconds(30), debounce: .zero, atMost: .zero, atSignals: .saveAndContinue,
      within: Patience.limit, notifications: System.phone.notifications(center), activity: ProcessActivity(),
      metadata: { SaveMetadata() }, value: { World(level: 1) })
    func post(_ notices: Notice...) { for notice in notices { center.post(name: notice.name, object: nil) } }
    post(.resigns, .entersBackground)
    #expect(autosave.isSuspended)
    post(.entersForeground)
    #expect(!autosave.isSuspended)
    post(.becomesActive)
    try autosave.suspend()
    post(.resigns, .becomesActive, .resigns, .entersBackground, .entersForeground, .becomesActive)
    #expect(autosave.isSuspended, "it had suspended itself")
    autosave.resume()
    post(.resigns, .entersBackground, .becomesActive)
    #expect(!autosave.isSuspended)
  }

  @Test("a game that a notification has suspended, and that then suspends itself, goes on when it wants to")
  func suspendsItselfLater() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    let center = NotificationCenter()
    let autosave = Autosave(
      game, to: .main, every: .seconds(30), debounce: .zero, atMost: .zero, atSignals: .saveAndContinue,
      within: Patience.limit, notifications: System.phone.notifications(center), activity: ProcessActivity(),
      metadata: { SaveMetadata() }, value: { World(level: 1) })
    // Its menu.
    autosave.onSuspend = { [unowned autosave] in #expect(throws: Never.self) { try autosave.suspend() } }
    for notice in [Notice.entersBackground, .entersForeground, .becomesActive] {
      center.post(name: notice.name, object: nil)
    }
    #expect(autosave.isSuspended)
    autosave.resume()
    #expect(!autosave.isSuspended)
  }

  @Test("a game that was asked to end saves nothing of what is left of its world")
  func inactiveAfterEnd() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    let center = NotificationCenter()
    var world = World(level: 3)
    let autosave = Autosave(
      game, to: .main, every: .seconds(30), debounce: .zero, atMost: .zero, atSignals: .saveAndContinue,
      within: Patience.limit, notifications: System.mac.notifications(center), activity: ProcessActivity(),
      metadata: { SaveMetadata() }, value: { world })
    center.post(name: Notice.terminates.name, object: nil)
    world.level = 0
    center.post(name: Notice.resigns.name, object: nil)
    #expect(try autosave.isEndRequested && game.saves.load(.main)?.level == 3)
  }

  @Test("a save that the disk delays beyond the deadline has the background time that the system grants")
  func backgroundTime() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    let center = NotificationCenter()
    let returned = Latch()
    let activity = ProcessActivity(beginBackground: { _ in { returned.open() } })
    let autosave = Autosave(
      game, to: .main, every: .seconds(30), debounce: .zero, atMost: .zero, atSignals: .saveAndContinue, within: .zero,
      notifications: System.phone.notifications(center), activity: activity, metadata: { SaveMetadata() },
      value: { World(level: 7) })
    var failures: [StoreError.Code?] = []
    autosave.onFailure = { failures.append(($0 as? StoreError)?.code) }
    let gate = Gate()
    let disk = try game.core.store.submit { _, _ in gate.pass() }
    gate.waitForArrival()
    center.post(name: Notice.resigns.name, object: nil)
    #expect(failures == [.timedOut])
    #expect(!returned.wait(within: .zero), "the save still waits for the disk")
    gate.open()
    try disk.wait()
    #expect(returned.wait(within: Patience.limit))
    let copy = try Self.copy(device)
    let later = try GameData.open("com.example.space", at: copy.url, environment: device.clock.environment)
    defer { end(later) }
    #expect(try later.saves.load(.main)?.level == 7)
  }

  @Test("a game on another thread has background time from the notification on, also if it comes late")
  func backgroundTimeElsewhere() async throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    try await onThread {
      let center = NotificationCenter()
      let (asked, returned) = (Count(), Count())
      let activity = ProcessActivity(beginBackground: { _ in
        asked.add()
        return { returned.add() }
      })
      let autosave = Autosave(
        game, to: .main, every: .seconds(30), debounce: .zero, atMost: .zero, atSignals: .saveAndContinue,
        within: .zero, notifications: System.phone.notifications(center), activity: activity,
        metadata: { SaveMetadata() }, value: { World(level: 7) })
      autosave.onFailure = { _ in }
      let isPosted = Latch()
      Thread {
        center.post(name: Notice.entersBackground.name, object: nil)
        isPosted.open()
      }.start()
      #expect(isPosted.wait(within: Patience.limit))
      #expect((asked.value, returned.value) == (1, 0), "nobody has saved yet")
      try? autosave.update()  // Throws `timedOut` unless the disk is fast.
      #expect(autosave.isSuspended)
      #expect(asked.value == 2)
      Self.expectAll(2, of: returned, [])
    }
  }

  @Test("notifications that follow one another at once share one deadline, and the next ones have their own")
  func sharedDeadline() {
    let centers = [NotificationCenter(), NotificationCenter()]
    let (center, other) = (ObjectIdentifier(centers[0]), ObjectIdentifier(centers[1]))
    var now = ContinuousClock.now
    func limit(_ center: ObjectIdentifier, isNew: Bool = false, taking used: Duration = .zero) -> Duration {
      let share = NoticeBudget.share(of: .seconds(2), at: center, isNew: isNew, now: now)
      now += used
      share.end(at: now)
      return share.limit
    }
    withExtendedLifetime(centers) {
      #expect(limit(center, taking: .seconds(1.5)) == .seconds(2))
      #expect(limit(other) == .seconds(2))
      now += .seconds(0.9)
      #expect(limit(center, taking: .seconds(3)) == .seconds(0.5))
      #expect(limit(center) == .zero)
      #expect(limit(center, isNew: true, taking: .seconds(1)) == .seconds(2))
      #expect(limit(center) == .seconds(1))
      now += .seconds(1)
      #expect(limit(center) == .seconds(2))
    }
  }
}
