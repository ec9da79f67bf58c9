public import Foundation
import Keepsake
import KeepsakeSimulation
import Synchronization

/// The time of a test's world: it stands still until the test turns it.
///
///     world.clock.advance(by: .seconds(60))
///     world.clock.advance(days: 30)
///
/// Saves and ledgers bear its date, autosaves are due by it, and all of synchronization waits by it: polls, pauses after a failure, transfers over a slow
/// network. Nothing waits for real time. It begins on 1 January 2026 at midnight, UTC, in every world, so that no test depends on the day on which it runs.
///
/// Who sleeps longer than a jump wakes once: thirty days in one jump are like thirty days with the device in a drawer.
/// Safe to use from any thread.
public final class TestClock: Sendable {
  /// When every world begins.
  public static let start = Date(timeIntervalSince1970: Double(startMilliseconds) / 1000)

  private static let startMilliseconds: Int64 = 1_767_225_600_000
  private static let secondsOfDay = 86_400.0

  private struct Transfers {
    /// When those under way will be done, by the time since the start.
    var ends: [UInt64: Duration] = [:]
    var last: UInt64 = 0
    /// How many let time pass as transfers need it.
    var hurrying = 0
  }
  private let manual = ManualClock()
  private let transfers = Mutex(Transfers())

  init() {}

  /// The date and time now.
  public var now: Date { Date(timeIntervalSince1970: Double(nowMilliseconds) / 1000) }

  /// How long the world has existed.
  public var elapsed: Duration { manual.elapsed }

  /// Lets time pass. Who sleeps wakes in the order in which the times were due; what they then do, they do on other threads: `TestWorld.settle()` waits
  /// for what concerns the cloud.
  ///
  /// Traps for a negative duration: this clock only goes forward.
  public func advance(by duration: Duration) {
    precondition(duration >= .zero, "TestClock.advance: time can't go back by \(duration)")
    manual.advance(by: duration)
  }

  /// Lets days of 24 hours pass, or parts of one. Traps for a negative number.
  public func advance(days: Double) { advance(by: .seconds(days * Self.secondsOfDay)) }

  var nowMilliseconds: Int64 { Self.startMilliseconds + Int64(manual.elapsed / .milliseconds(1)) }

  /// What a device of this world takes for the system. `folder` lives as long as whoever uses that.
  func environment(of folder: TestFolder, seed: UInt64) -> GameEnvironment {
    GameEnvironment(
      nowMilliseconds: { [self] in withExtendedLifetime(folder) { nowMilliseconds } },
      uptime: { [manual] in manual.elapsed },
      sleep: { [manual] in try await manual.sleep(for: $0) },
      random: SeededGenerator(seed: seed))
  }

  // MARK: Transfers

  /// Returns when a transfer that takes so long is done: when the clock has been turned so far, or at once, with the clock turned, while somebody hurries.
  /// Throws `CancellationError`.
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

  /// From here to `stopHurrying` time passes as transfers need it.
  func hurry() {
    let end = transfers.withLock { transfers in
      transfers.hurrying += 1
      return transfers.ends.values.max()
    }
    if let end { manual.advance(to: end) }
  }

  func stopHurrying() { transfers.withLock { $0.hurrying -= 1 } }
}
