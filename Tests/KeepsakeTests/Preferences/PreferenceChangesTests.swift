import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeTesting
import Observation
import TestSupport
import Testing

@testable import Keepsake

/// How changes of preferences reach the game, its views, and other devices.
@Suite struct PreferenceChangesTests {
  let clock = TestClock()
  let device: Device

  init() throws { device = try Device(clock: clock) }

  /// Whether an observer of `look` is notified of `change`.
  private func notices(_ look: () -> Void, _ change: () throws -> Void) rethrows -> Bool {
    let told = Shared(false)
    withObservationTracking(look) { told.value = true }
    try change()
    return told.value
  }

  @Test("an observer of a preference is notified when it changes, and only then")
  func observation() throws {
    let game = try device.open()
    defer { end(game) }
    let preferences = game.preferences
    #expect(
      notices {
        _ = preferences[.volume]
      } _: {
        preferences[.volume] = 0.1
      })
    #expect(
      notices {
        _ = preferences[.volume]
      } _: {
        preferences[.volume] = 0.2
      })
    #expect(
      !notices {
        _ = preferences[.volume]
      } _: {
        preferences[.volume] = 0.2
      })
    #expect(
      !notices {
        _ = preferences[.volume]
      } _: {
        preferences[.lives] = 1
      })
    #expect(
      notices {
        _ = preferences[.bindings]
      } _: {
        preferences[.bindings] = Bindings(jump: "w")
      })
    #expect(
      !notices {
        _ = preferences[.bindings]
      } _: {
        preferences[.bindings] = Bindings(jump: "w")
      })
    #expect(
      try notices {
        _ = preferences[.volume]
      } _: {
        try preferences.remove(.volume)
      })
    #expect(
      notices {
        _ = preferences.contains(.nick)
      } _: {
        preferences[.nick] = "Ada"
      })
    #expect(
      notices {
        _ = preferences.names
      } _: {
        preferences[.isMuted] = true
      })
    #expect(
      !notices {
        _ = preferences.names
      } _: {
        preferences[.isMuted] = false
      })
    #expect(
      try notices {
        _ = preferences.names
      } _: {
        try preferences.remove(.isMuted)
      })
    #expect(
      try notices {
        _ = preferences[.hat]
      } _: {
        try arrive("crown", as: "hat", in: game)
      })
    #expect(
      try !notices {
        _ = preferences[.hat]
      } _: {
        try arrive("crown", as: "hat", in: game)
      })
  }

  @Test("observing a preference after many unobserved reads and writes reports each change", arguments: [false, true])
  func observedLate(isSynced: Bool) throws {
    let game = try device.open()
    defer { end(game) }
    let (preferences, key) = (game.preferences, PreferenceKey("late", default: 0, synced: isSynced))
    for number in 1...100 {
      preferences[key] = number
      #expect(preferences[key] == number)
    }
    for number in 101...110 {
      // Observing another preference makes no difference.
      _ = notices({ _ = preferences[.volume] }, { preferences[.volume] = Double(number) })
      #expect(notices({ _ = preferences[key] }, { preferences[key] = number }))
      preferences[key] = -number
    }
  }

  @Test("an observer may read and set preferences while it is being notified")
  func reentrant() throws {
    let game = try device.open()
    defer { end(game) }
    let preferences = game.preferences
    let seen = Shared<[Double]>([])
    withObservationTracking {
      _ = preferences[.volume]
    } onChange: {
      seen.value.append(preferences[.volume])
      preferences[.lives] = 9
    }
    preferences[.volume] = 0.1
    #expect(seen.value == [0.8] && preferences[.lives] == 9 && preferences[.volume] == 0.1)
  }

  @Test("the stream of changes names each preference that the game sets or another device has changed")
  func stream() async throws {
    let game = try device.open()
    let changes = game.preferences.changes
    game.preferences[.volume] = 0.1
    game.preferences[.volume] = 0.1
    game.preferences[.bindings] = Bindings(jump: "w")
    try game.preferences.remove(.volume)
    try arrive("crown", as: "hat", in: game)
    var iterator = changes.makeAsyncIterator()
    for expected in [["volume"], ["bindings"], ["volume"], ["hat"]] { #expect(await iterator.next() == expected) }
    #expect(game.takeChanges() == [.preferences(["hat"])])
    try game.close()
    #expect(await iterator.next() == nil)
  }

  @Test("a `@Preference` property reads and sets the preference, and can be observed")
  func wrapper() throws {
    struct Options {
      @Preference<Double> var volume: Double
      init(_ game: GameData) { _volume = Preference(.volume, game) }
    }
    let game = try device.open()
    defer { end(game) }
    @Preference(.lives, game) var lives
    #expect(lives == 3)
    lives = 4
    lives += 1
    let options = Options(game)
    options.volume = 0.25
    #expect(game.preferences[.lives] == 5 && game.preferences[.volume] == 0.25 && options.volume == 0.25)
    #expect(
      notices {
        _ = options.volume
      } _: {
        game.preferences[.volume] = 0.5
      })
  }

  // MARK: Other devices

  /// Applies a value of another device, as an exchange would store it.
  private func arrive(_ text: String?, as name: String, in game: GameData, at milliseconds: Int64 = 20_000_000_000)
    throws
  {
    let key = CellKey(collection: "preferences", key: name)
    let stamp = Stamp(caughtUp: false, milliseconds: milliseconds, writer: WriterID(9))
    try arrive(
      CellState(value: .latest(stamp, .data(try text.map { try Archive.encode($0) } ?? Data()))), as: key, in: game)
  }

  private func arrive(_ state: CellState, as key: CellKey, in game: GameData) throws {
    try game.core.store.write { transaction in
      let joined = try transaction.cell(key)?.joined(with: state) ?? state
      try transaction.setCell(CellUpdate(key: key, state: joined))
    }
    try game.preferences.received([key])
  }

  @Test("a synced preference has its latest value on all of the player's devices; local ones stay on theirs")
  func syncs() async throws {
    let cloud = MemoryCloud()
    let tablet = try Device(clock: clock)
    let (here, there) = (try device.open(), try tablet.open())
    defer {
      end(here)
      end(there)
    }
    here.preferences[.hat] = "cap"
    here.preferences[.volume] = 0.1
    try await here.preferences.flush()
    for game in [here, there] {
      game.cloud.connect(cloud.address)
      try await game.cloud.sync()
    }
    try await until { there.preferences[.hat] == "cap" }
    #expect(there.preferences[.volume] == 0.8)
    clock.advance(by: .seconds(5))
    there.preferences[.hat] = "crown"
    #expect(there.preferences[.hat] == "crown")
    try await until { here.preferences[.hat] == "crown" }
    #expect(here.preferences.names == ["hat", "volume"] && there.preferences.names == ["hat"])
    clock.advance(by: .seconds(5))
    try here.preferences.remove(.hat)
    try await until { there.preferences[.hat] == "none" && !there.preferences.contains(.hat) }
    // Local preferences are neither in the cells nor in the outbox.
    let sent = try here.core.store.read {
      try $0.cells(in: nil).map(\.key) + $0.outbox(limit: 100).flatMap(\.cells).map(\.key)
    }
    #expect(sent.allSatisfy { $0.key == "hat" })
  }

  @Test("a value that was just set isn't undone by an older one that arrives, and a newer one replaces it")
  func race() async throws {
    let game = try device.open()
    defer { end(game) }
    // The commit that would follow by itself, a frame later, is held back; `flush` commits without it.
    game.preferences.queue.suspend()
    defer { game.preferences.queue.resume() }
    game.preferences[.hat] = "mine"
    try arrive("theirs", as: "hat", in: game)
    #expect(game.preferences[.hat] == "mine", "set on this device and not committed yet")
    try await game.preferences.flush()
    #expect(game.preferences[.hat] == "mine")
    let cell = try game.core.store.read { try $0.cell(CellKey(collection: "preferences", key: "hat")) }
    let mine = Stamp(caughtUp: false, milliseconds: 20_000_000_001, writer: game.core.store.writer)
    #expect(cell?.value == .latest(mine, .data(try Archive.encode("mine"))))
    try arrive("later", as: "hat", in: game, at: 30_000_000_000)
    try await until { game.preferences[.hat] == "later" }
    try arrive("earlier", as: "hat", in: game, at: 5_000_000_000)
    #expect(game.preferences[.hat] == "later")
  }

  @Test("of two received values the later one is kept, even if it arrives while observers learn of the earlier one")
  func laterWhileTold() throws {
    let game = try device.open()
    defer { end(game) }
    for name in ["hat", "never looked at"] {
      let key = PreferenceKey(name, default: "none", synced: true)
      let hasCome = Shared(false)
      withObservationTracking {
        // An observer of the names is notified of each new one.
        _ = name == "hat" ? [game.preferences[key]] : game.preferences.names
      } onChange: { [self] in
        // The observer is notified of the value that arrives now, too.
        guard !hasCome.value else { return }
        hasCome.value = true
        do {
          try arrive("later", as: name, in: game, at: 30_000_000_000)
          #expect(game.preferences[key] == "later")
        } catch { Issue.record("\(error)") }
      }
      try arrive("earlier", as: name, in: game)
      #expect(game.preferences[key] == "later")
    }
    let isRemoved = Shared(false)
    withObservationTracking {
      _ = game.preferences.names
    } onChange: { [self] in
      guard !isRemoved.value else { return }
      isRemoved.value = true
      do { try arrive(nil, as: "removed", in: game, at: 30_000_000_000) } catch { Issue.record("\(error)") }
    }
    try arrive("earlier", as: "removed", in: game)
    #expect(game.preferences[PreferenceKey("removed", default: "none", synced: true)] == "none")
  }

  @Test("an observer that blocks when it is notified of a received value blocks neither commits nor other values")
  func blockingObserver() async throws {
    let game = try device.open()
    defer { end(game) }
    game.preferences[.hat] = "cap"
    try await game.preferences.flush()
    let (told, released) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let patience = DispatchTimeInterval.seconds(600)
    let wasHeldUp = Shared(false)
    try await onThread { [self] in
      // The store is blocked before anything else is submitted, so that the two commits share a transaction.
      let gate = Gate()
      let first = try game.core.store.submit { _, _ in gate.pass() }
      gate.waitForArrival()
      game.preferences[.hat] = "crown"
      game.preferences.commitSoon()
      withObservationTracking {
        _ = game.preferences[.hat]
      } onChange: {
        told.signal()
        if released.wait(timeout: .now() + patience) == .timedOut { wasHeldUp.value = true }
      }
      // Follows the preferences' commit, and is stored before that commit's values are read again.
      let second = try game.core.store.submit { transaction, _ in
        let stamp = Stamp(caughtUp: true, milliseconds: 30_000_000_000, writer: WriterID(9))
        try transaction.setCell(
          CellUpdate(
            key: CellKey(collection: "preferences", key: "hat"),
            state: CellState(value: .latest(stamp, .data(Archive.encode("theirs"))))))
      }
      gate.open()
      try first.wait()
      try second.wait()
      #expect(told.wait(timeout: .now() + patience) == .success)
      try arrive("boots", as: "shoes", in: game)
      #expect(game.preferences[PreferenceKey("shoes", default: "", synced: true)] == "boots")
    }
    game.preferences[.volume] = 0.1
    try await until { try storedPreference("volume", of: game) == Archive.encode(0.1) || wasHeldUp.value }
    #expect(try !wasHeldUp.value && storedPreference("volume", of: game) == Archive.encode(0.1))
    released.signal()
    try await until { game.preferences[.hat] == "theirs" }
  }

  @Test("a key that changes between local and synced has its default and an incident; nothing is sent or lost")
  func declaredOtherwise() throws {
    var game = try device.open()
    let local = PreferenceKey("hat", default: "local default")
    game.preferences[local] = "my hat"
    game.preferences[PreferenceKey("shoes", default: "", synced: true)] = "boots"
    try game.close()

    game = try device.open()
    #expect(game.preferences[.hat] == "none" && game.preferences[.hat] == "none")
    #expect(game.preferences[PreferenceKey("shoes", default: "bare")] == "bare")
    #expect(game.incidents.map(\.kind) == [.unreadable, .unreadable])
    #expect(game.incidents.first?.message.contains("\"hat\"") == true)
    #expect(try game.core.store.read { try $0.cells(in: "preferences").map(\.key.key) } == ["shoes"])
    // After a new choice there are two values, a local and a synced one.
    game.preferences[.hat] = "crown"
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(game.preferences[local] == "my hat")
    #expect(gameErrorCode { try game.preferences.set("x", for: .hat) } == .misuse, "declared both ways in one program")
    #expect(try game.core.store.read { try $0.cells(in: "preferences").count } == 2)
  }

  @Test("a value that another program keeps under the same name with another rule isn't read or overwritten")
  func foreignCell() throws {
    let game = try device.open()
    defer { end(game) }
    let key = CellKey(collection: "preferences", key: "hat")
    try arrive(CellState(value: .max(.int(6))), as: key, in: game)
    #expect(game.preferences[.hat] == "none" && !game.preferences.contains(.hat))
    #expect(game.incidents.map(\.kind) == [.unreadable])
    #expect(gameErrorCode { try game.preferences.set("crown", for: .hat) } == .misuse)
    try arrive(
      CellState(value: .latest(Stamp(caughtUp: true, milliseconds: 1, writer: WriterID(2)), .string("x"))),
      as: CellKey(collection: "preferences", key: "b"), in: game)
    #expect(game.preferences[PreferenceKey("b", default: "c", synced: true)] == "c")
    // Set before the value arrived: the rest of the commit is stored all the same. The commit that would follow by
    // itself is held back until then.
    game.preferences.queue.suspend()
    defer { game.preferences.queue.resume() }
    let scarf = CellKey(collection: "preferences", key: "scarf")
    let scarfKey = PreferenceKey("scarf", default: "", synced: true)
    game.preferences[scarfKey] = "red"
    game.preferences[.volume] = 0.1
    try game.core.store.write { try $0.setCell(CellUpdate(key: scarf, state: CellState(value: .max(.int(1))))) }
    try game.preferences.flush()
    #expect(try storedPreference("volume", of: game) == Archive.encode(0.1))
    #expect(game.incidents.contains { $0.kind == .failedCommit && $0.message.contains("scarf") })
  }

  @Test("many large synced preferences that are set at once all reach the other device")
  func manyLarge() async throws {
    let cloud = MemoryCloud()
    let tablet = try Device(clock: clock)
    let (here, there) = (try device.open(), try tablet.open())
    defer {
      end(here)
      end(there)
    }
    let text = String(repeating: "x", count: 200_000)
    func key(_ number: Int) -> PreferenceKey<String> { PreferenceKey("large \(number)", default: "", synced: true) }
    for number in 0..<30 { here.preferences[key(number)] = text }
    try await here.preferences.flush()
    for game in [here, there] {
      game.cloud.connect(cloud.address)
      try await game.cloud.sync()
    }
    try await until { (0..<30).allSatisfy { there.preferences[key($0)].count == text.count } }
    #expect(here.incidents.isEmpty && there.incidents.isEmpty)
  }
}
