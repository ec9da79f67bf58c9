/// What it costs to decode a content, in nanoseconds of an ordinary processor, estimated from the lengths of its frames.
///
/// Deltas keep what changed, but each takes its base to be decoded first. How long a chain of them may get is decided by what loading
/// costs: at most three times what a full frame would, or 50 ms where that is more.
enum DecodingCost {
  /// So much may a chain always cost: nobody waits for less than a few frames of a game.
  static let alwaysAllowed = 50_000_000
  /// The most frames from a content down to a full one, whatever they cost: a guard against circles in a damaged store.
  static let maximumDepth = 1_000

  /// Reading and decoding one frame. Measured figures are half of these: devices differ, and the bound is to hold on slow ones too.
  static func frame(plain: Int, encoded: Int) -> Int { 20_000 + plain / 10 + encoded * 2 }

  /// What the chain of a content of `plain` bytes may cost, where it is a part of a save of `whole` bytes, and a full frame of it would have
  /// `fullFrame` bytes.
  static func limit(plain: Int, of whole: Int, fullFrame: Int) -> Int {
    // Once for each content, however it is kept.
    let hashing = plain
    let full = frame(plain: plain, encoded: fullFrame) + hashing
    let share = Int(Double(alwaysAllowed) * Double(plain) / Double(max(whole, plain, 1)))
    return max(3 * full, share) - hashing
  }

  /// What no chain that a store writes comes near: one that costs more was forged to take time, and is damage.
  static func believable(plain: Int) -> Int { 8 * limit(plain: plain, of: plain, fullFrame: plain / 16) }
}
