#if Cloud
import ArgumentParser

/// How a command prints what `--json` asks for, its failure included.
enum JSONForm {
  /// One object on standard output.
  case object
  /// An object on each line of standard output, as things happen.
  case lines
  /// The same on standard error, because standard output belongs to a program that the command runs.
  case linesBesideProgram
}

/// A command that doesn't print one object.
protocol PrintsLines: ParsableCommand {
  static var jsonForm: JSONForm { get }
}
#endif
