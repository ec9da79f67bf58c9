import Foundation
import Keepsake

/// What is kept: where the ship is, where it looks, and how it drifts. It comes back to the last bit.
@Archivable struct World: Equatable {
  static let size = SIMD2(320.0, 200.0)
  /// Steps in a second of play.
  static let rate = 60.0
  /// Units a second.
  static let fastest = 150.0
  static let push = 6.0

  var position = World.size / 2
  var velocity = SIMD2<Double>.zero
  /// Radians, clockwise; at zero the ship looks up. Below a full turn.
  var heading = 0.0
  /// How many steps were flown.
  var steps = 0
  /// Steps for which the flame still shows: a moment's picture, not worth keeping.
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

  /// A sixtieth of a second: the ship drifts, and what leaves on one side comes in on the other.
  mutating func step() {
    position += velocity / Self.rate
    position = SIMD2(Self.wrapped(position.x, Self.size.x), Self.wrapped(position.y, Self.size.y))
    steps += 1
    flame = max(0, flame - 1)
  }

  private static func wrapped(_ value: Double, _ size: Double) -> Double {
    let rest = value.truncatingRemainder(dividingBy: size)
    let wrapped = rest < 0 ? rest + size : rest
    // A hair below zero, plus the size, is rounded to the size.
    return wrapped < size ? wrapped : 0
  }

  /// A save that somebody has edited must not end the game in the middle of a frame.
  func didDecode(context: Any?) throws {
    let isInside = position.x >= 0 && position.x < Self.size.x && position.y >= 0 && position.y < Self.size.y
    guard isInside, heading >= 0, heading < 2 * .pi, speed <= Self.fastest * 1.001, steps >= 0, steps < .max / 2 else {
      throw ArchiveError(
        .mismatch, "the saved ship is nowhere in this space: restore an earlier version, or begin anew with another --data")
    }
  }

  /// All that is kept, to the last bit, on a line.
  var bits: String {
    let values = [heading, position.x, position.y, velocity.x, velocity.y]
    return "\(steps) " + values.map { String($0.bitPattern, radix: 16) }.joined(separator: " ")
  }
}

extension Slot<World> {
  static var main: Self { "main" }
}
