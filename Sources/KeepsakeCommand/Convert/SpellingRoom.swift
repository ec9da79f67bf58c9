#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInspection

/// Bytes of texts and data that may be spelled out. A small file can name a long text any number of times; written where it is named, it would fill
/// the memory.
struct SpellingRoom {
  private var left: Int

  /// Of any file, however small.
  private static let freeBytes = 1 << 28
  /// Honest files name a text or data a few times.
  private static let bytesPerByte = 4

  init(of byteCount: Int) { left = max(Self.freeBytes, byteCount.multipliedReportingOverflow(by: Self.bytesPerByte).partialValue) }

  /// Everything in a keyed archive, objects once, since the rest of the file refers to them.
  mutating func take(_ graph: ObjectGraph) throws {
    for field in graph.top { try take(all: field.value) }
    for object in graph.objects { for field in object?.fields ?? [] { try take(all: field.value) } }
  }

  /// Whether another program's file can be written out, or compared, value by value.
  static func check(_ file: ArchiveInspection) throws {
    guard file.foreign != nil else { return }
    var room = SpellingRoom(of: file.header.byteCount)
    try room.take(all: file.root)
    for object in file.objects { for field in object?.fields ?? [] { try room.take(all: field.value) } }
  }

  /// Calls itself for each level, of which readers allow some hundred.
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
        .data, "texts and data that are named many times would fill the memory, written where they are named",
        next: "keepsake inspect shows what is in it")
    }
  }
}
#endif
