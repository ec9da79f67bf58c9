import Foundation
import Keepsake
import TestSupport
import Testing

/// The clock of all devices of a test, which only the test advances.
final class TestClock: Sendable {
  // Ten million seconds after 1970: no test may depend on the current date.
  private let milliseconds = Shared<Int64>(10_000_000_000)

  var now: Int64 { milliseconds.value }

  func advance(by duration: Duration) { milliseconds.value += duration.components.seconds * 1000 }

  /// Short pauses really pass. Longer ones never end, so that nothing arrives merely because a device polled its cloud.
  private static let longestPause = Duration.seconds(10)

  /// While this is true, no pause ends, so that no device tries again by itself.
  let holdsPauses = Shared(false)

  var environment: GameEnvironment {
    GameEnvironment(
      nowMilliseconds: { [milliseconds] in milliseconds.value },
      uptime: { [milliseconds] in .milliseconds(milliseconds.value) },
      sleep: { [holdsPauses] pause in
        try await Task.sleep(for: pause <= Self.longestPause ? pause : .seconds(1 << 30))
        while holdsPauses.value { try await Task.sleep(for: .milliseconds(5)) }
      })
  }
}

@Archivable struct World: Equatable {
  @Merge(.max) var level = 1
  @Merge(.union) var cleared: Set<String> = []
  var ship = SIMD2<Float>(160, 240)
  var heading = 0.0
  @Unsaved var sparks = 0
}

/// No field has a merge rule: a policy has to choose between two versions.
@Archivable struct Journal: Equatable {
  var text: String = ""
}

@Archivable struct Park: Equatable {
  @Merge(.max) var level = 1
  var visitors = 0
}

/// `Park` as a newer game saves it, which older games must not read.
@Archivable(name: "Park", version: 2) struct NewerPark: Equatable {
  @Merge(.max) var level = 1
}

/// Has no merge rules of its own, but its `Park` has.
@Archivable struct Estate {
  var park = Park()
  var trees: [Tree] = []
}

/// Not Equatable.
@Archivable struct Tree { var id = 0 }

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
  static let main = Slot("main")
}

extension Slot<Journal> {
  static let byProgress = Slot("journal", resolving: .mostProgress)
  static let asking = Slot("journal", resolving: .ask)
}

extension Slot<Garden> {
  static let garden = Slot("garden")
}

extension ProgressKey<Int> {
  static let level = ProgressKey("level", default: 1, rule: .max)
  static let fastest = ProgressKey("fastest", default: 1_000, rule: .min)
  static let coinsFound = ProgressKey("coins found", rule: .counter)
}

extension ProgressKey<String> {
  static let hat = ProgressKey("hat", default: "none", rule: .latest)
}

extension ProgressKey<Set<String>> {
  static let badges = ProgressKey("badges", rule: .union)
  static let favourites = ProgressKey("favourites", rule: .set)
}

extension ProgressKey<[String: Int]> {
  static let bestTimes = ProgressKey("best times", rule: .dictionary(of: .min))
  static let defeated = ProgressKey("defeated", rule: .dictionary(of: .counter))
}

extension ProgressKey<[String: String]> {
  static let hats = ProgressKey("hats", rule: .dictionary(of: .latest))
}

extension ProgressKey<[Int: Set<String>]> {
  static let equipped = ProgressKey("equipped", rule: .dictionary(of: .set))
  static let stars = ProgressKey("stars", rule: .dictionary(of: .union))
}

extension ProgressKey<Int?> {
  static let firstWin = ProgressKey("first win", rule: .optional(of: .min))
  static let tries = ProgressKey("tries", rule: .optional(of: .counter))
}

extension Currency {
  static let gems = Currency("gems")
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

  /// The game's environment retains the temporary folder, which therefore exists as long as the game.
  func open() throws -> GameData {
    var environment = clock.environment
    let now = environment.nowMilliseconds
    environment.nowMilliseconds = { [folder] in withExtendedLifetime(folder) { now() } }
    return try GameData.open("com.example.space", at: url, environment: environment)
  }
}

extension GameDataError.Code {
  /// The code if no bank was asked.
  static func insufficient(_ spendable: Int64, of total: Int64) -> Self {
    .insufficient(spendable: spendable, total: total, held: [])
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

/// Closes the game at the end of a test. If closing fails, so does the test.
func end(_ game: GameData) {
  do { try game.close(within: Patience.limit) } catch { Issue.record("closing failed: \(error)") }
}
