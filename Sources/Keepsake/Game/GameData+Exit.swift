import KeepsakeStore

extension GameData {
  /// How long the end of the program waits for what was captured and set, if the game hasn't closed its data: 2 seconds
  /// unless changed. Zero switches this off.
  ///
  /// Applies when the program returns from `main` or calls `exit`. If the limit passes first, a line on standard error
  /// says so, and what wasn't durable yet is lost. A save that fails in that time is a line, too, with its slot and the
  /// reason. Preferences whose commit had failed are tried once more. Nothing waits when a signal, `abort`, `_exit` or
  /// the system ends the program; `Autosave` handles signals. What the game hasn't captured isn't saved in any case.
  ///
  /// Applies to all of a program's data. Prefer `close(within:)`, which reports errors.
  public static var exitLimit: Duration {
    get { ExitWork.limit }
    set { ExitWork.limit = newValue }
  }
}
