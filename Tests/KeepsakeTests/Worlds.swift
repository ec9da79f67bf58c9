import Foundation
import Keepsake
import Testing

/// Every device of a test writes with a clock that the test turns.
final class TestClock: Sendable {
  // Ten million seconds after 1970: no test may pass because it ran today.
  private let milliseconds = Shared<Int64>(10_000_000_000)

  var now: Int64 { milliseconds.value }

  func advance(by duration: Duration) { milliseconds.value += duration.components.seconds * 1000 }

  var environment: GameEnvironment {
    GameEnvironment(
      nowMilliseconds: { [milliseconds] in milliseconds.value },
      uptime: { [milliseconds] in .milliseconds(milliseconds.value) })
  }
}

final class Shared<Value: Sendable>: @unchecked Sendable {
  // Unchecked: guarded by the lock.
  private let lock = NSLock()
  private var stored: Value

  init(_ value: Value) { stored = value }

  var value: Value {
    get { lock.withLock { stored } }
    set { lock.withLock { stored = newValue } }
  }
}

@Archivable struct World: Equatable {
  @Merge(.max) var level = 1
  @Merge(.union) var cleared: Set<String> = []
  var ship = SIMD2<Float>(160, 240)
  var heading = 0.0
  @Unsaved var sparks = 0
}

/// Not mergeable: a policy has to choose.
@Archivable struct Journal: Equatable {
  var text: String = ""
}

/// A graph of objects, as most games have: not Sendable.
@Archivable final class Garden {
  var name = "garden"
  var flowers: [Flower] = []
  var chosen: Flower?

  init() {}
}

@Archivable final class Flower {
  var kind = "rose"
  var health = 10
  weak var neighbour: Flower?

  init(kind: String) { self.kind = kind }
}

extension Slot<World> {
  static var main: Self { "main" }
}

extension Slot<Journal> {
  static var byProgress: Self { Slot("journal", resolving: .mostProgress) }
  static var asking: Self { Slot("journal", resolving: .ask) }
}

extension Slot<Garden> {
  static var garden: Self { "garden" }
}

extension ProgressKey<Int> {
  static var level: Self { .max("level", default: 1) }
  static var fastest: Self { .min("fastest", default: 1_000) }
  static var coinsFound: Self { .counter("coins found") }
}

extension ProgressKey<String> {
  static var hat: Self { .latest("hat", default: "none") }
}

extension ProgressKey<Set<String>> {
  static var badges: Self { .union("badges") }
}

extension Currency {
  static let gems: Self = "gems"
}

final class TemporaryFolder: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("keepsake-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }
}

/// One player's device in a test.
struct Device {
  let folder: TemporaryFolder
  let clock: TestClock

  init(clock: TestClock = TestClock()) throws {
    folder = try TemporaryFolder()
    self.clock = clock
  }

  var url: URL { folder.url.appendingPathComponent("data") }

  func open() throws -> GameData {
    try GameData.open("com.example.space", at: url, environment: clock.environment)
  }
}

func storeErrorCode(_ body: () throws -> Void) -> StoreError.Code? { thrown(StoreError.self, by: body)?.code }

func gameErrorCode(_ body: () throws -> Void) -> GameDataError.Code? { thrown(GameDataError.self, by: body)?.code }

/// Any other error is a failure of the test.
private func thrown<Failure: Error>(_ type: Failure.Type, by body: () throws -> Void) -> Failure? {
  do {
    try body()
    return nil
  } catch let error as Failure {
    return error
  } catch {
    Issue.record("another error: \(error)")
    return nil
  }
}

/// Closes at a test's end; a close that fails is a failure of its own.
func end(_ game: GameData) {
  do { try game.close() } catch { Issue.record("closing failed: \(error)") }
}
