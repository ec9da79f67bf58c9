#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInspection

/// A budget for the bytes of texts and data that may be written out. A small file can refer to a long text any number
/// of times; written out at every reference, it would fill the memory.
struct SpellingRoom {
  private var left: Int

  /// The budget for any file, however small.
  private static let freeBytes = 1 << 28
  /// Honest files refer to a text or data only a few times.
  private static let bytesPerByte = 4

  init(of byteCount: Int) {
    left = max(Self.freeBytes, byteCount.multipliedReportingOverflow(by: Self.bytesPerByte).partialValue)
  }

  /// Charges everything in a keyed archive, each object once, since the rest of the file refers to it.
  mutating func take(_ graph: ObjectGraph) throws {
    for field in graph.top { try take(all: field.value) }
    for object in graph.objects { for field in object?.fields ?? [] { try take(all: field.value) } }
  }

  /// Checks whether another program's file can be written out, or compared, value by value.
  static func check(_ file: ArchiveInspection) throws {
    guard file.foreign != nil else { return }
    var room = SpellingRoom(of: file.header.byteCount)
    try room.take(all: file.root)
    for object in file.objects { for field in object?.fields ?? [] { try room.take(all: field.value) } }
  }

  /// Recurses once per level; readers allow a few hundred.
  private mutating func take(all value: ArchiveValue) throws {
    switch value {
    case .array(let values), .set(let values), .vector(let values): for value in values { try take(all: value) }
    case .dictionary(let pairs):
      for pair in pairs {
        try take(all: pair.key)
        try take(all: pair.value)
      }
    case .structure(_, let fields), .enumeration(_, _, let fields): for field in fields { try take(all: field.value) }
    default: try take(leaf: value)
    }
  }

  mutating func take(leaf value: ArchiveValue) throws {
    switch value {
    case .string(let text), .url(let text), .decimal(let text): left -= text.utf8.count
    case .data(let data): left -= data.count
    default: return
    }
    guard left >= 0 else {
      throw CommandFailure(
        .data, "text and data that are referred to many times would fill the memory if written out at each reference",
        next: "use keepsake inspect to see what the file contains")
    }
  }
}
#endif
