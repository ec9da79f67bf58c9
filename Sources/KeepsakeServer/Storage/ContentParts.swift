#if Cloud
import Foundation

/// A content in a database that keeps it in parts, which are fetched one by one.
struct ContentParts: Sendable {
  /// Of each part but the last.
  static let partBytes = 256 << 10

  /// The number of bytes.
  var count: Int
  /// Unlike that of any other content.
  var tag: String
  /// Returns the part with a number, from 0.
  private let part: @Sendable (Int) async throws -> Data

  init(count: Int, tag: String, part: @escaping @Sendable (Int) async throws -> Data) {
    (self.count, self.tag, self.part) = (count, tag, part)
  }

  /// Calls `body` with the bytes of a range, in pieces.
  func each(of range: Range<Int>, _ body: (Data) async throws -> Void) async throws {
    var offset = range.lowerBound
    while offset < range.upperBound {
      let number = offset / Self.partBytes
      let bytes = try await part(number)
      let (first, end) = (offset - number * Self.partBytes, range.upperBound - number * Self.partBytes)
      guard first < bytes.count, bytes.count <= Self.partBytes else {
        throw ServerError(.damaged, "A part of a content has \(bytes.count) bytes.")
      }
      let piece = bytes.dropFirst(first).prefix(end - first)
      try await body(piece)
      offset += piece.count
    }
  }
}

extension KeptContent.Bytes {
  /// Fetches what has to be fetched, and returns what reads the bytes then, which may block.
  func reader() async throws -> @Sendable () throws -> Data {
    switch self {
    case .memory(let data): return { data }
    case .file(let url, _):
      return {
        do {
          return try Data(contentsOf: url, options: .mappedIfSafe)
        } catch {
          throw ServerError(.inputOutput, "The content file \(url.path) can't be read.", cause: error)
        }
      }
    case .parts(let parts):
      var data = Data(capacity: parts.count)
      try await parts.each(of: 0..<parts.count) { data += $0 }
      return { [data] in data }
    }
  }
}
#endif
