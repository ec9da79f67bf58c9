import Foundation
import Keepsake
import KeepsakePlatform
import KeepsakeSimulation
import Synchronization
import TestSupport
import Testing

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
    let autosave = Autosave(
      game, to: .main, every: .seconds(30), debounce: .zero, atMost: .zero, atSignals: .saveAndContinue,
      within: Patience.limit, notifications: system.notifications(center), activity: ProcessActivity(),
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
        center.post(name: notice.name, object: nil)
        story.append(notice.rawValue)
        #expect(
          autosave.isSuspended == (notice == .entersBackground || (state == .background && notice == .terminates)))
        if notice.isLast { try expectAll(of: game, world, in: device, "\(system), seed \(seed): \(story)") }
      }
      state = step.to
    }
    #expect(failures.isEmpty, "\(failures)")
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

  @Test("a save that the disk delays beyond the deadline has the background time that the system grants")
  func backgroundTime() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    let center = NotificationCenter()
    let ended = Latch()
    let (begun, left) = (Shared(0), Shared<TemporaryFolder?>(nil))
    let activity = ProcessActivity(beginBackground: { _ in
      begun.value += 1
      return {
        left.value = try? Self.copy(device)
        ended.open()
      }
    })
    let autosave = Autosave(
      game, to: .main, every: .seconds(30), debounce: .zero, atMost: .zero, atSignals: .saveAndContinue, within: .zero,
      notifications: System.phone.notifications(center), activity: activity, metadata: { SaveMetadata() },
      value: { World(level: 7) })
    // What it waits for in vain goes on.
    autosave.onFailure = { #expect(($0 as? StoreError)?.code == .timedOut) }
    center.post(name: Notice.resigns.name, object: nil)
    #expect(ended.wait(within: Patience.limit))
    #expect(begun.value == 1)
    let copy = try #require(left.value)
    let later = try GameData.open("com.example.space", at: copy.url, environment: device.clock.environment)
    defer { end(later) }
    #expect(try later.saves.load(.main)?.level == 7)
    center.post(name: Notice.becomesActive.name, object: nil)
    #expect(begun.value == 1, "nothing is saved when the player comes back")
  }
}
