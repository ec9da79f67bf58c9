#if Cloud
/// How fast bytes moved lately: measured over the last few slices of time, and not on average since the beginning, so
/// that a fast start buys nothing.
///
/// A slice counts only if the other side was waited for during all of it.
struct SpeedWindow: Hashable, Sendable {
  /// The slices that make up the window.
  static let slices = 6

  private let minimumBytes: Int
  private var counts: [Int] = []
  private var current = 0
  private var wasWaiting = false

  /// - Parameter minimumBytes: The least that has to move in a whole window, all slices together.
  init(minimumBytes: Int) { self.minimumBytes = minimumBytes }

  /// Records that bytes moved.
  mutating func moved(_ bytes: Int) { current += bytes }

  /// Records that the server made the other side wait, at some time during this slice.
  mutating func paused() { wasWaiting = true }

  /// Ends a slice.
  ///
  /// - Returns: Whether the other side was too slow during the last whole window.
  mutating func endSlice() -> Bool {
    defer { (current, wasWaiting) = (0, false) }
    // What moves while the server sets the pace says nothing about the other side, unless it is enough.
    if wasWaiting, current < minimumBytes / Self.slices { return false }
    counts.append(current)
    if counts.count > Self.slices { counts.removeFirst() }
    return counts.count == Self.slices && counts.reduce(0, +) < minimumBytes
  }

  /// Begins anew: what comes is another body.
  mutating func restart() {
    counts.removeAll(keepingCapacity: true)
    (current, wasWaiting) = (0, false)
  }
}
#endif
