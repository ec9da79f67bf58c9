#if Cloud
import CZlib
import Foundation

/// Decompresses gzip and zlib with the system's zlib.
enum Inflater {
  /// Why there are no plain bytes.
  enum Failure: Error, Equatable {
    /// Cut off, altered, or followed by other bytes; what zlib says.
    case damaged(String)
    /// There are more plain bytes than allowed.
    case tooLarge
  }

  /// The plain bytes that are taken at a time.
  private static let chunkBytes = 256 << 10
  /// Accepts gzip and zlib, and recognizes which it is, with windows of any size.
  private static let anyFormat: Int32 = 32 + 15
  private static let gzipMagic: [UInt8] = [0x1F, 0x8B]

  /// Returns the plain bytes. Takes little more memory than these, and little for what is refused: they are counted
  /// first, and decompressed a second time to be kept.
  ///
  /// - Parameter data: A zlib stream, or one or several gzip streams, possibly with zeros behind them, as tape blocks
  ///   have.
  /// - Throws: `Failure`; `tooLarge` as soon as there are more.
  static func expand(_ data: Data, maximumBytes: Int) throws -> Data {
    var count = 0
    try decompress(data) { chunk in
      count += chunk.count
      guard count <= maximumBytes else { throw Failure.tooLarge }
    }
    var plain = Data(capacity: count)
    try decompress(data) { plain.append(contentsOf: $0) }
    return plain
  }

  /// Calls `receive` with the plain bytes, in order.
  private static func decompress(_ data: Data, _ receive: (UnsafeRawBufferPointer) throws -> Void) throws {
    var stream = z_stream()
    guard
      inflateInit2_(&stream, anyFormat, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { throw CommandFailure(.io, "there is not enough memory to decompress") }
    defer { inflateEnd(&stream) }
    var chunk = [UInt8](repeating: 0, count: chunkBytes)
    try data.withUnsafeBytes { source in
      var rest = UnsafeMutableRawBufferPointer(mutating: source)[...]
      while true {
        let status = chunk.withUnsafeMutableBytes { target in
          let given = min(rest.count, Int(Int32.max))
          stream.next_in = UnsafeMutableRawBufferPointer(rebasing: rest).bindMemory(to: UInt8.self).baseAddress
          stream.avail_in = UInt32(given)
          stream.next_out = target.bindMemory(to: UInt8.self).baseAddress
          stream.avail_out = UInt32(target.count)
          let status = inflate(&stream, Z_NO_FLUSH)
          rest = rest.dropFirst(given - Int(stream.avail_in))
          return status
        }
        try chunk.withUnsafeBytes { try receive(.init(rebasing: $0.prefix(chunkBytes - Int(stream.avail_out)))) }
        switch status {
        case Z_OK where stream.avail_out == 0 || !rest.isEmpty: continue
        case Z_STREAM_END:
          if rest.starts(with: gzipMagic), data.starts(with: gzipMagic), inflateReset(&stream) == Z_OK { continue }
          guard rest.allSatisfy({ $0 == 0 }) else { throw Failure.damaged("it is followed by other bytes") }
          return
        case Z_OK, Z_BUF_ERROR: throw Failure.damaged("it is cut off")
        case Z_MEM_ERROR: throw CommandFailure(.io, "there is not enough memory to decompress")
        default: throw Failure.damaged(stream.msg.map { String(cString: $0) } ?? "it needs a dictionary")
        }
      }
    }
  }
}
#endif
