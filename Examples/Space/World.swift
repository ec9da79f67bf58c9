import Foundation
import Keepsake

/// The saved state: the ship's position, heading and velocity, restored to the last bit.
@Archivable struct World: Equatable {
  static let size = SIMD2(320.0, 200.0)
  /// Steps per second of play.
  static let rate = 60.0
  /// Units per second.
  static let fastest = 150.0
  static let push = 6.0

  var position = World.size / 2
  var velocity = SIMD2<Double>.zero
  /// In radians, clockwise, and less than a full turn; at zero the ship points up.
  var heading = 0.0
  /// The number of steps flown.
  var steps = 0
  /// The number of steps for which the flame is still shown; not worth saving.
  @Unsaved var flame = 0

  var direction: SIMD2<Double> { SIMD2(sin(heading), -cos(heading)) }
  var speed: Double { (velocity * velocity).sum().squareRoot() }

  mutating func turn(degrees: Double) {
    heading = Self.wrapped(heading + degrees * .pi / 180, 2 * .pi)
  }

  mutating func thrust() {
    velocity += direction * Self.push
    if speed > Self.fastest { velocity *= Self.fastest / speed }
    flame = 12
  }

  /// Advances by a sixtieth of a second: the ship drifts, and reappears at the opposite side when it leaves the space.
  mutating func step() {
    position += velocity / Self.rate
    position = SIMD2(Self.wrapped(position.x, Self.size.x), Self.wrapped(position.y, Self.size.y))
    steps += 1
    flame = max(0, flame - 1)
  }

  private static func wrapped(_ value: Double, _ size: Double) -> Double {
    let rest = value.truncatingRemainder(dividingBy: size)
    let wrapped = rest < 0 ? rest + size : rest
    // A value slightly below zero, plus the size, is rounded to the size.
    return wrapped < size ? wrapped : 0
  }

  /// A save that somebody has edited must not end the game in the middle of a frame.
  func didDecode(context: Any?) throws {
    let isInside = position.x >= 0 && position.x < Self.size.x && position.y >= 0 && position.y < Self.size.y
    guard isInside, heading >= 0, heading < 2 * .pi, speed <= Self.fastest * 1.001, steps >= 0, steps < .max / 2 else {
      throw ArchiveError(
        .mismatch,
        "the saved ship is outside of this space: restore an earlier version, or start over with another --data folder")
    }
  }

  /// The saved state to the last bit, as one line.
  var bits: String {
    let values = [heading, position.x, position.y, velocity.x, velocity.y]
    return "\(steps) " + values.map { String($0.bitPattern, radix: 16) }.joined(separator: " ")
  }
}

extension Slot<World> {
  static let main = Slot("main")
}
