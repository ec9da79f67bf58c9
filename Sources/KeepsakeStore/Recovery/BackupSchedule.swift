import Foundation

/// When copies of a store are due, and by which clock.
struct BackupSchedule: Sendable {
  /// How old the newest copy of a store of that many bytes may be before the next commit starts another.
  var interval: @Sendable (Int64) -> Duration
  var now: @Sendable () -> ContinuousClock.Instant = { .now }
  /// Called between two steps of a copy in the background, to leave the disk to the game.
  var pause: @Sendable () -> Void = { Thread.sleep(forTimeInterval: 0.002) }
  /// Whether no copies are made at all.
  var isOff = false

  static let off = BackupSchedule(interval: { _ in .seconds(24 * 60 * 60) }, isOff: true)

  /// Large stores are copied rarely, which bounds the cost of copies.
  static let standard = BackupSchedule { bytes in
    switch bytes {
    case ...(64 << 20): .seconds(5 * 60)
    case ...(1 << 30): .seconds(60 * 60)
    default: .seconds(24 * 60 * 60)
    }
  }
}
