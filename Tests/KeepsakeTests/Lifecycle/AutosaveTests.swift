import Foundation
import Keepsake
import KeepsakePlatform
import TestSupport
import Testing

@Suite struct AutosaveTests {
  let device: Device

  init() throws { device = try Device() }

  @Test("an autosave saves after its interval, at once when requested, and not at all if nothing changed")
  func saves() throws {
    let game = try device.open()
    defer { end(game) }
    var world = World(level: 1)
    let title = { SaveMetadata(title: "t") }
    let autosave = Autosave(
      game, to: .main, every: .seconds(30), atSignals: .ignored, within: Patience.limit, metadata: title,
      value: { world })
    func saved() throws -> Int { try game.saves.load(.main).map { _ in try game.saves.history(of: .main).count } ?? 0 }
    try autosave.update()
    #expect(try saved() == 0)
    device.clock.advance(by: .seconds(30))
    try autosave.update()
    try autosave.update()
    #expect(try saved() == 1)
    device.clock.advance(by: .seconds(40))
    try autosave.update()
    #expect(try saved() == 1, "the world did not change")
    world.level = 2
    try autosave.update()
    #expect(try saved() == 1)
    autosave.setNeedsSave(now: true)
    try autosave.update()
    try autosave.update()
    #expect(try saved() == 2)
    world.level = 3
    try autosave.saveNow().wait()
    #expect(try saved() == 3)
    #expect(try game.saves.history(of: .main).first?.metadata.title == "t")
  }

  @Test("`saveNow` throws if the game's data is closed")
  func tellsFailure() throws {
    let game = try device.open()
    let world = World(level: 1)
    let autosave = Autosave(game, to: .main, atSignals: .ignored, within: Patience.limit) { world }
    try game.close()
    #expect(gameErrorCode { try autosave.saveNow() } == .closed)
  }

  @Test("a burst of changes makes one save when it ends, and another after the longest delay if it lasts")
  func debounces() throws {
    let game = try device.open()
    defer { end(game) }
    var world = World(level: 0)
    let autosave = Autosave(
      game, to: .main, every: .seconds(3_600), debounce: .seconds(2), atMost: .seconds(5), atSignals: .ignored,
      within: Patience.limit,
      value: { world })
    var saved: [Int] = []
    for second in 0..<20 {
      world.level += 1
      // Changes in each of the first eight seconds, then none.
      if second < 8 { autosave.setNeedsSave() }
      try autosave.update()
      if let level = try game.saves.load(.main)?.level, level != saved.last { saved.append(level) }
      device.clock.advance(by: .seconds(1))
    }
    // Five seconds after the first change, and two after the last.
    #expect(saved == [6, 10])
  }

  @Test(
    "zero and negative intervals save at each update, enormous ones only on request, and none of them traps",
    arguments: [Duration.zero, .seconds(-3_600), .seconds(Int64.min), .seconds(Int64.max)])
  func strangeSpans(span: Duration) throws {
    let game = try device.open()
    defer { end(game) }
    var world = World(level: 1)
    let autosave = Autosave(
      game, to: .main, every: span, debounce: span, atMost: span, atSignals: .ignored, within: span, value: { world })
    for level in 1...3 {
      world.level = level
      autosave.setNeedsSave()
      try autosave.update()
      let expected = span <= .zero ? level : nil
      #expect(try game.saves.load(.main)?.level == expected)
      device.clock.advance(by: .seconds(1))
    }
    autosave.setNeedsSave(now: true)
    try autosave.update()
    #expect(try game.saves.load(.main)?.level == 3)
  }

  @Test("`update` throws for a value that can't be encoded, but not in each frame, and saves it once it can be")
  func badWorld() throws {
    let game = try device.open()
    defer { end(game) }
    var zoo = Zoo(beast: Dragon())
    let slot = Slot<Zoo>("zoo")
    let autosave = Autosave(game, to: slot, every: .seconds(30), atSignals: .ignored, within: Patience.limit) { zoo }
    try autosave.update()
    device.clock.advance(by: .seconds(30))
    for _ in 0..<3 {
      let error = #expect(throws: ArchiveError.self) { try autosave.update() }
      #expect(error?.code == .unlistedClass)
      // But not in each frame.
      try autosave.update()
      device.clock.advance(by: .seconds(1))
    }
    zoo.beast = nil
    try autosave.update()
    #expect(try game.saves.load(slot).map { $0.beast == nil } == true)
    zoo.beast = Dragon()
    #expect(throws: ArchiveError.self) { try autosave.suspend() }
    #expect(autosave.isSuspended)
    autosave.resume()
    #expect(throws: ArchiveError.self) { try autosave.terminate() }
    #expect(autosave.isEndRequested)
    #expect(try game.saves.load(slot).map { $0.beast == nil } == true)
  }

  @Test("each update of an autosave to an invalid slot name throws a typed error")
  func badSlot() throws {
    let game = try device.open()
    defer { end(game) }
    let autosave = Autosave(game, to: Slot("two\nlines"), every: .zero, atSignals: .ignored, within: Patience.limit) {
      World(level: 1)
    }
    for _ in 0..<2 { #expect(gameErrorCode { try autosave.update() } == .misuse) }
  }

  @Test("suspending saves before the game is notified, and pauses autosaves and the clock until it resumes")
  func suspends() throws {
    let game = try device.open()
    defer { end(game) }
    var world = World(level: 1)
    var told: [String] = []
    let autosave = Autosave(game, to: .main, every: .seconds(30), atSignals: .ignored, within: Patience.limit) { world }
    autosave.onSuspend = {
      // What the game does to suspend itself isn't part of the save.
      world.level = 100
      told.append("suspended")
    }
    autosave.onResume = { told.append("resumed") }
    func saved() throws -> Int? { try game.saves.load(.main)?.level }
    device.clock.advance(by: .seconds(10))
    try autosave.suspend()
    try autosave.suspend()
    #expect(try autosave.isSuspended && told == ["suspended"] && saved() == 1)
    device.clock.advance(by: .seconds(3_600))
    autosave.setNeedsSave(now: true)
    try autosave.update()
    #expect(try saved() == 1, "nothing is saved while it is suspended")
    #expect(autosave.playtime == .seconds(10))
    world.level = 2
    try autosave.saveNow().wait()
    world.level = 3
    autosave.resume()
    autosave.resume()
    #expect(!autosave.isSuspended && told == ["suspended", "resumed"] && autosave.playtime == .seconds(10))
    device.clock.advance(by: .seconds(29))
    try autosave.update()
    #expect(try saved() == 2, "the suspended hour does not count")
    device.clock.advance(by: .seconds(1))
    try autosave.update()
    #expect(try saved() == 3)
    #expect(autosave.playtime == .seconds(40))
    // Unchanged: nothing is written, but the game is notified.
    try autosave.suspend()
    #expect(try told.count == 3 && game.saves.history(of: .main).count == 3)
  }

  @Test("`terminate` saves before it returns, each time, and notifies the game once")
  func terminates() throws {
    let game = try device.open()
    defer { end(game) }
    var world = World(level: 1)
    var told = 0
    let autosave = Autosave(game, to: .main, atSignals: .ignored, within: Patience.limit) { world }
    autosave.onTerminate = { told += 1 }
    #expect(!autosave.isEndRequested)
    try autosave.terminate(within: Patience.limit)
    world.level = 2
    try autosave.terminate(within: Patience.limit)
    #expect(try autosave.isEndRequested && told == 1 && game.saves.load(.main)?.level == 2)
  }

  @Test("an autosave run by a task continues after failures, and ends when the game ends or the task is cancelled")
  func runs() async throws {
    let game = try device.open()
    defer { end(game) }
    var zoo = Zoo(beast: Dragon())
    var failures: [any Error] = []
    let slot = Slot<Zoo>("zoo")
    let autosave = Autosave(game, to: slot, every: .zero, atSignals: .ignored, within: Patience.limit) { zoo }
    autosave.onFailure = { [unowned autosave] error in
      failures.append(error)
      guard failures.count == 3 else { return }
      zoo.beast = nil
      do { try autosave.terminate() } catch { failures.append(error) }
    }
    await autosave.run(every: .zero)
    #expect(failures.map { ($0 as? ArchiveError)?.code } == [.unlistedClass, .unlistedClass, .unlistedClass])
    #expect(try autosave.isEndRequested && game.saves.load(slot).map { $0.beast == nil } == true)
    // The end was requested already: returns at once.
    await autosave.run()
    let cancelled = Task { @MainActor in
      let unheard = Autosave(game, to: .main, atSignals: .ignored, within: Patience.limit) { World(level: 1) }
      withUnsafeCurrentTask { $0?.cancel() }
      await unheard.run()
      return unheard.isEndRequested
    }
    #expect(await cancelled.value == false)
  }

  // MARK: Notifications

  private static let names = (
    suspend: Notification.Name("test.suspend"), resume: Notification.Name("test.resume"),
    end: Notification.Name("test.end")
  )

  private static func notifications(_ center: NotificationCenter) -> LifecycleNotifications {
    LifecycleNotifications(center: center, suspend: [names.suspend], resume: [names.resume], terminate: [names.end])
  }

  @Test("a notification on the game's thread saves before it returns, because the app may never run again")
  func notifiedOnSameThread() throws {
    let game = try device.open()
    defer { end(game) }
    let center = NotificationCenter()
    var world = World(level: 1)
    var told: [String] = []
    var autosave: Autosave<World>? = Autosave(
      game, to: .main, every: .seconds(30), debounce: .zero, atMost: .zero, atSignals: .saveAndContinue,
      within: Patience.limit,
      notifications: Self.notifications(center), activity: ProcessActivity(), metadata: { SaveMetadata() },
      value: { world })
    autosave?.onSuspend = { told.append("suspended") }
    autosave?.onResume = { told.append("resumed") }
    center.post(name: Self.names.suspend, object: nil)
    #expect(try told == ["suspended"] && game.saves.load(.main)?.level == 1)
    center.post(name: Self.names.resume, object: nil)
    #expect(told == ["suspended", "resumed"])
    world.level = 2
    center.post(name: Self.names.end, object: nil)
    #expect(try autosave?.isEndRequested == true && game.saves.load(.main)?.level == 2)
    world.level = 3
    autosave = nil
    center.post(name: Self.names.suspend, object: nil)
    #expect(try told.count == 2 && game.saves.load(.main)?.level == 2)
  }

  @Test("a notification on another thread blocks that thread until the game's thread has saved")
  func notifiedElsewhere() async throws {
    let game = try device.open()
    defer { end(game) }
    let wasHeld = try await onThread {
      let center = NotificationCenter()
      let autosave = Autosave(
        game, to: .main, every: .seconds(30), debounce: .zero, atMost: .zero, atSignals: .saveAndContinue,
        within: Patience.limit,
        notifications: Self.notifications(center), activity: ProcessActivity(), metadata: { SaveMetadata() },
        value: { World(level: 5) })
      let held = Shared(false)
      let poster = Thread {
        center.post(name: Self.names.suspend, object: nil)
        // Read on another thread: what was saved when the notification returned.
        held.value = (try? game.saves.load(.main)?.level) == 5
        center.post(name: Self.names.resume, object: nil)
        center.post(name: Self.names.end, object: nil)
      }
      poster.start()
      while !autosave.isEndRequested {
        try autosave.update()
        Thread.sleep(forTimeInterval: 0.001)
      }
      return held.value && !autosave.isSuspended
    }
    #expect(wasHeld)
  }
}

/// Can't be saved while the beast is a dragon, because that class isn't listed.
@Archivable struct Zoo {
  var beast: Beast?
}

@Archivable class Beast {
  var name = ""

  init() {}
}

final class Dragon: Beast {}
