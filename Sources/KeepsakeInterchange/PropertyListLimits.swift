package import Foundation

/// What a property list may take at most; passing a limit is a typed error, never a crash.
public struct PropertyListLimits: Sendable, Equatable {
  /// Bytes of a file. 256 MiB is the largest saved game that the store takes by default.
  public var bytes = 256 << 20
  /// Lists and dictionaries in each other. What walks a tree by calls takes a few hundred bytes of the stack for each, and a secondary thread has
  /// 512 KiB on some platforms.
  public var depth = 256
  /// Values of a file when each is counted as often as it stands somewhere, and texts and data once more for each `bytesForValue`. A small binary file whose lists name
  /// each other twice could stand for any number: in memory they are shared, but whoever walks or writes the tree would never end.
  public var values = 32 << 20

  /// Makes the limits that are used where none are given.
  public init() {}

  /// The limits used where none are given.
  public static let standard = PropertyListLimits()

  /// The same, and values in proportion to a file, for whoever walks the whole tree of a file that may be forged: honest files have a byte at least for
  /// each value, while lists that name each other twice stand for any number.
  package static func inProportion(to data: Data) -> Self {
    var limits = standard
    limits.values = min(limits.values, max(freeValues, data.count * valuesPerByte))
    return limits
  }

  /// Values of any file, however small: some dozens of MiB.
  private static let freeValues = 1 << 20
  /// Long texts count as several values, and may be referred to by a byte.
  private static let valuesPerByte = 16

  /// How much text or data counts as one more value.
  static let bytesForValue = 64
  /// How often a byte of a binary file may be read on the average. Honest files have each once, and lengths before it; in forged ones any number
  /// of objects may overlap.
  static let readings = 4
  /// Read besides that in any file, however short.
  static let freeReadings = 1 << 10
}
