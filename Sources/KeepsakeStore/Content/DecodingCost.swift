/// The cost of decoding a content, in nanoseconds of an ordinary processor, estimated from the lengths of its frames.
///
/// Deltas store only what changed, but each requires decoding its base first. The maximum length of a chain is
/// determined by what loading costs: at most three times as much as a full frame, or 50 ms if that is more.
enum DecodingCost {
  /// The cost that a chain may always have: nobody notices a wait of less than a few frames of a game.
  static let alwaysAllowed = 50_000_000
  /// The maximum number of frames from a content down to a full one, whatever they cost: a guard against circles in a
  /// damaged store.
  static let maximumDepth = 1_000

  /// Returns the cost of reading and decoding one frame. Measured figures are half of these: devices differ, and the
  /// limit must hold on slow ones too.
  static func frame(plain: Int, encoded: Int) -> Int { 20_000 + plain / 10 + encoded * 2 }

  /// Returns the maximum cost of the chain of a content of `plain` bytes that is part of a save of `whole` bytes, if a
  /// full frame of it would have `fullFrame` bytes.
  static func limit(plain: Int, of whole: Int, fullFrame: Int) -> Int {
    // Paid once per content, however it is stored.
    let hashing = plain
    let full = frame(plain: plain, encoded: fullFrame) + hashing
    let share = Int(Double(alwaysAllowed) * Double(plain) / Double(max(whole, plain, 1)))
    return max(3 * full, share) - hashing
  }

  /// A cost far beyond any chain that a store writes. A chain that costs more was forged to waste time, and counts as
  /// damage.
  static func believable(plain: Int) -> Int { 8 * limit(plain: plain, of: plain, fullFrame: plain / 16) }
}
