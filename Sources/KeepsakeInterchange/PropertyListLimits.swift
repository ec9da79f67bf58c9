package import Foundation

/// The maximum sizes of a property list. Exceeding a limit is a typed error, never a crash.
public struct PropertyListLimits: Sendable, Equatable {
  /// Bytes of a file. By default 256 MiB, the largest saved game that the store accepts by default.
  public var bytes = 256 << 20
  /// Nesting depth of lists and dictionaries. Code that traverses a tree recursively takes a few hundred bytes of stack
  /// for each level, and a secondary thread has 512 KiB on some platforms.
  public var depth = 256
  /// Number of values in a file, each counted as often as it occurs; texts and data also count once more for each
  /// `bytesForValue`. A small binary file whose lists refer to each other twice could expand to any number: in memory
  /// they are shared, but traversing or writing the tree would never end.
  public var values = 32 << 20

  /// Creates the default limits.
  public init() {}

  /// The default limits.
  public static let standard = PropertyListLimits()

  /// Returns limits with `values` in proportion to a file's size, for callers that traverse the whole tree of a file
  /// that may be forged. Valid files have at least one byte for each value, while lists that refer to each other twice
  /// can expand to any number.
  package static func inProportion(to data: Data) -> Self {
    var limits = standard
    limits.values = min(limits.values, max(freeValues, data.count * valuesPerByte))
    return limits
  }

  /// The number of values allowed in any file, however small. They take some dozens of MiB.
  private static let freeValues = 1 << 20
  /// The number of values allowed per byte. Long texts count as several values, and a reference to one may take a
  /// single byte.
  private static let valuesPerByte = 16

  /// The number of bytes of text or data that count as one more value.
  static let bytesForValue = 64
  /// How often a byte of a binary file may be read on average. In valid files, each is read once, plus the lengths
  /// before it; in forged ones, any number of objects may overlap.
  static let readings = 4
  /// The number of additional bytes that may be read in any file, however short.
  static let freeReadings = 1 << 10
}
