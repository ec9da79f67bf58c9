import Foundation

public enum Progress {
  /// Tells on standard error what is going on, so that standard output has only results.
  public static func report(_ line: String) { FileHandle.standardError.write(Data("  \(line)\n".utf8)) }
}

/// The command line asks for what there isn't.
public struct UsageError: Error {
  public let message: String

  public init(message: String) { self.message = message }
}
