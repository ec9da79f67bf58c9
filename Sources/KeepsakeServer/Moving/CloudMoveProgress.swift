#if Cloud
/// How far a cloud's move has come.
package struct CloudMoveProgress: Sendable {
  package typealias Receiver = @Sendable (CloudMoveProgress) -> Void

  package enum Step: String, Sendable {
    /// Finding out what there is.
    case listing
    /// Copying, while players play.
    case copying
    /// Copying the rest, while play is stopped.
    case finishing
    /// Removing what was copied.
    case removing
  }
  package var step: Step
  package var done = 0
  package var total = 0
  package var bytes = 0
  package var seconds = 0.0

  /// A second.
  package var rate: Double { seconds > 0 ? Double(done) / seconds : 0 }
  /// How long the rest takes; nil as long as nothing is known.
  package var secondsLeft: Double? { rate > 0 ? Double(max(0, total - done)) / rate : nil }
}

/// What a move has done.
package struct CloudMoveSummary: Sendable {
  /// How many players' rows were copied and compared, one that was copied twice counted twice.
  package var copied = 0
  package var rows = 0
  package var bytes = 0
  package var contents = 0
  package var contentBytes = 0
  /// What had changed again when this ended, and wasn't copied.
  package var waiting = 0
  /// Whether the cloud is where it was to be.
  package var isFinished = false
  /// How long nobody could play: from the moment when the old database took no write any more to the one when the new
  /// one could be used. Nil if that was at another time.
  package var stoppedMilliseconds: Int64?
  /// Where the cloud is or will be, without a password.
  package var target = ""

  package init(isFinished: Bool = false, target: String = "") {
    (self.isFinished, self.target) = (isFinished, target)
  }
}
#endif
