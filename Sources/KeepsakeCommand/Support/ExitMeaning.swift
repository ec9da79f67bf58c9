#if Cloud
/// The exit statuses that several commands have, and what each means. Those from 64 on are of <sysexits.h>.
enum ExitMeaning {
  static let all: [(status: Int32, meaning: String)] = [
    (0, "done; sound; no difference"),
    (1, "not sound, different, out of date, or lost (see the command)"),
    (CommandFailure.Kind.usage.rawValue, "wrong usage: arguments or settings"),
    (CommandFailure.Kind.data.rawValue, "the input is damaged, or of unknown format"),
    (CommandFailure.Kind.noInput.rawValue, "what was named doesn't exist"),
    (CommandFailure.Kind.unavailable.rawValue, "the cloud can't be reached, or is in trouble"),
    (CommandFailure.Kind.software.rawValue, "an internal error of the command"),
    (CommandFailure.Kind.exists.rawValue, "the output exists already"),
    (CommandFailure.Kind.io.rawValue, "a disk error"),
    (CommandFailure.Kind.temporary.rawValue, "in use by another process, or stopped early: try again later"),
    (CommandFailure.Kind.permission.rawValue, "not permitted; a secret is missing or wrong"),
    (CommandFailure.Kind.newer.rawValue, "written by a newer version"),
  ]

  /// One line for each.
  static var text: String {
    all.map { "  \($0.status < 10 ? " " : "")\($0.status)  \($0.meaning)" }.joined(separator: "\n")
  }
}
#endif
