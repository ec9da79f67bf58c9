#if Cloud
import Foundation

/// The large contents of a container, whose bytes are beside its rows. They come before the rows that name them.
enum MovedContents {
  /// A row names bytes that haven't come: it was changed after they were looked for.
  struct Unknown: Error {}

  // Where a row of the table `content` or `version` has what.
  static let baseIndex = 2
  static let leansIndex = 3
  static let fileIndex = 4
  static let sizeIndex = 5
  static let suspectIndex = 7
  static let headIndex = 5
  static let slotIndex = 6

  /// What became of the bytes that rows name.
  struct Arrived: Sendable {
    var names: Set<Data> = []
    /// Those that are gone where they were.
    var lost: Set<Data> = []
    var count = 0
    var bytes = 0
  }
}
#endif
