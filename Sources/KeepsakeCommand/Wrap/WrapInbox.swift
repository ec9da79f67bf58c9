#if Cloud
/// What other tasks and threads have left for the loop of a wrapped game.
struct WrapLetters: Sendable {
  var end: GameProcess.End?
  /// The signal that stops the command; it is never taken back.
  var stop: Int32?
}

typealias WrapInbox = Inbox<WrapLetters>
#endif
