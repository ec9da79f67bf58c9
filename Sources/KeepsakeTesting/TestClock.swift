public import Foundation
import Keepsake
import KeepsakeSimulation
import Synchronization

/// The clock of a test's world. It only moves when the test advances it.
///
/// ```swift
/// world.clock.advance(by: .seconds(60))
/// world.clock.advance(days: 30)
/// ```
///
/// Saves and ledger entries get their dates from it, autosaves are scheduled by it, and sync waits by it: polls, pauses
/// after failures, transfers over a slow network. Nothing waits for real time. It starts on 1 January 2026 at midnight
/// UTC in every world.
///
/// A sleep that ends within a jump wakes once: thirty days in one jump are like thirty days with the device switched
/// off. Safe to use from any thread.
public final class TestClock: Sendable {
  /// The time at which every world starts.
  public static let start = Date(timeIntervalSince1970: Double(startMilliseconds) / 1000)

  private static let startMilliseconds: Int64 = 1_767_225_600_000
  private static let secondsOfDay = 86_400.0

  private struct Transfers {
    /// When the transfers in progress end, as time since the start.
    var ends: [UInt64: Duration] = [:]
    var last: UInt64 = 0
    /// How many callers let time pass as transfers need it.
    var hurrying = 0
  }
  private let manual = ManualClock()
  private let transfers = Mutex(Transfers())

  init() {}

  /// The current date and time.
  public var now: Date { Date(timeIntervalSince1970: Double(nowMilliseconds) / 1000) }

  /// The time since the world was created.
  public var elapsed: Duration { manual.elapsed }

  /// Advances the clock. Sleeping tasks wake in the order of their times and continue on other threads:
  /// `TestWorld.settle()` waits for those that concern the cloud.
  ///
  /// - Parameter duration: The time to add. Traps if it is negative.
  public func advance(by duration: Duration) {
    precondition(duration >= .zero, "TestClock.advance: time can't go back by \(duration)")
    manual.advance(by: duration)
  }

  /// Advances the clock by days of 24 hours.
  ///
  /// - Parameter days: The number of days. Traps if it is negative.
  public func advance(days: Double) { advance(by: .seconds(days * Self.secondsOfDay)) }

  /// How long everything that waits for the clock still has to wait, shortest first.
  package var sleeps: [Duration] { manual.sleeps }

  var nowMilliseconds: Int64 { Self.startMilliseconds + Int64(manual.elapsed / .milliseconds(1)) }

  /// Returns the environment that a device of this world uses as its system. It keeps `folder` alive.
  func environment(of folder: TestFolder, seed: UInt64) -> GameEnvironment {
    GameEnvironment(
      nowMilliseconds: { [self] in withExtendedLifetime(folder) { nowMilliseconds } },
      uptime: { [manual] in manual.elapsed },
      sleep: { [manual] in try await manual.sleep(for: $0) },
      random: SeededGenerator(seed: seed))
  }

  // MARK: Transfers

  /// Waits until a transfer of this duration is done: until the clock has been advanced that far. During `hurry`, it
  /// advances the clock itself and returns immediately. Throws `CancellationError`.
  func transfer(taking duration: Duration) async throws {
    guard duration > .zero else { return }
    let (id, end, hurries) = transfers.withLock { transfers in
      let end = manual.elapsed + duration
      transfers.last += 1
      transfers.ends[transfers.last] = end
      return (transfers.last, end, transfers.hurrying > 0)
    }
    defer { transfers.withLock { _ = $0.ends.removeValue(forKey: id) } }
    if hurries { manual.advance(to: end) }
    try await manual.sleep(until: end)
  }

  /// From now until `stopHurrying`, time passes as transfers need it.
  func hurry() {
    let end = transfers.withLock { transfers in
      transfers.hurrying += 1
      return transfers.ends.values.max()
    }
    if let end { manual.advance(to: end) }
  }

  func stopHurrying() { transfers.withLock { $0.hurrying -= 1 } }
}
