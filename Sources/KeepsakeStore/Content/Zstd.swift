import CZstd
package import Foundation
import Synchronization

/// Compresses and decompresses single zstd frames, alone or with other bytes as their prefix.
///
/// A frame made with a prefix matches what it shares with the prefix as if both were one run of bytes. That is all a
/// delta is. No two calls share a context; calls from several threads run in parallel.
package enum Zstd {
  /// Game saves are written often and read seldom; measurements showed that higher levels cost more time than they save
  /// bytes.
  package static let level: Int32 = 3
  /// From this total size of content and prefix on, long-distance matching is used too: the tables of level 3 forget
  /// what lies further back.
  static let longDistanceThreshold = 1 << 20

  /// Returns one frame that contains `plain` and declares its length.
  package static func compress(_ plain: Data, prefix: Data? = nil, level: Int32 = level) throws -> Data {
    let context = try takeContext()
    defer { giveBack(context) }
    try check(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level), "setting the level")
    try check(ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 1), "setting the content size")
    let reach = plain.count + (prefix?.count ?? 0)
    if let prefix, !prefix.isEmpty {
      try check(ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, windowLog(covering: reach)), "setting the window")
      if reach >= longDistanceThreshold {
        try check(ZSTD_CCtx_setParameter(context, ZSTD_c_enableLongDistanceMatching, 1), "setting long distance")
      }
    }
    let capacity = ZSTD_compressBound(plain.count)
    try check(capacity, "sizing")
    return try allocating(capacity) { target in
      try plain.withUnsafeBytes { source in
        // The context only references the prefix, which must stay in memory until the frame is done.
        try (prefix ?? Data()).withUnsafeBytes { before in
          if !before.isEmpty {
            try check(ZSTD_CCtx_refPrefix(context, before.baseAddress, before.count), "setting the prefix")
          }
          return try check(
            ZSTD_compress2(context, target.baseAddress, target.count, source.baseAddress, source.count), "compressing")
        }
      }
    }
  }

  /// Returns the `length` plain bytes of `frame`, which must be exactly one frame that declares that length.
  ///
  /// Throws `damaged` for anything else, before allocating memory for what a frame merely claims.
  package static func decompress(_ frame: Data, prefix: Data? = nil, length: Int) throws -> Data {
    try frame.withUnsafeBytes { source in
      let declared = ZSTD_getFrameContentSize(source.baseAddress, source.count)
      guard UInt64(exactly: length) == UInt64(declared) else {
        throw StoreError(.damaged, "a content's frame doesn't contain the \(length) bytes that it should")
      }
      let frameLength = ZSTD_findFrameCompressedSize(source.baseAddress, source.count)
      guard ZSTD_isError(frameLength) == 0, frameLength == source.count else {
        throw StoreError(.damaged, "a content's frame is cut off or followed by other bytes")
      }
      guard let context = ZSTD_createDCtx() else { throw StoreError(.io, "there is not enough memory to decompress") }
      defer { ZSTD_freeDCtx(context) }
      try check(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, maximumWindowLog), "setting the window")
      return try allocating(length) { target in
        try (prefix ?? Data()).withUnsafeBytes { before in
          if !before.isEmpty {
            try check(ZSTD_DCtx_refPrefix(context, before.baseAddress, before.count), "setting the prefix")
          }
          let count = ZSTD_decompressDCtx(context, target.baseAddress, target.count, source.baseAddress, source.count)
          guard ZSTD_isError(count) == 0, count == length else {
            throw StoreError(.damaged, "a content's frame can't be decoded")
          }
          return count
        }
      }
    }
  }

  /// Content and prefix are at most 256 MiB each, so a window of 512 MiB covers both.
  static let maximumWindowLog: Int32 = 29

  /// A compression context for reuse: creating one, and touching its tables for the first time, takes as long as a
  /// small save.
  private static let idle = Mutex<IdleContext>(IdleContext())
  private struct IdleContext: @unchecked Sendable {
    // Unchecked: used only by the caller that took it out under the lock.
    var context: OpaquePointer?
  }
  /// Larger contexts, used for large contents, are freed.
  private static let idleBytes = 8 << 20

  private static func takeContext() throws -> OpaquePointer {
    let taken = idle.withLock { idle in
      defer { idle.context = nil }
      return IdleContext(context: idle.context)
    }
    guard let context = taken.context ?? ZSTD_createCCtx() else {
      throw StoreError(.io, "there is not enough memory to compress")
    }
    return context
  }

  private static func giveBack(_ context: OpaquePointer) {
    ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters)
    let isSmall = ZSTD_sizeof_CCtx(context) <= idleBytes
    let given = IdleContext(context: context)
    let isTaken = idle.withLock { idle in
      guard isSmall, idle.context == nil else { return false }
      idle = given
      return true
    }
    if !isTaken { ZSTD_freeCCtx(given.context) }
  }

  private static func windowLog(covering count: Int) -> Int32 {
    let bits = Int32(Int.bitWidth - max(count, 1).leadingZeroBitCount)
    // 10 is zstd's smallest window.
    return min(max(bits, 10), maximumWindowLog)
  }

  /// Allocates memory that isn't cleared first, and fills it with `fill`, which returns how much of it is used.
  private static func allocating(_ capacity: Int, _ fill: (UnsafeMutableRawBufferPointer) throws -> Int) throws -> Data
  {
    guard capacity > 0 else {
      // The functions still need an address to write nothing to.
      var nothing: UInt8 = 0
      _ = try withUnsafeMutableBytes(of: &nothing) { try fill(UnsafeMutableRawBufferPointer(rebasing: $0[..<0])) }
      return Data()
    }
    guard let memory = malloc(capacity) else {
      throw StoreError(.io, "there is not enough memory for \(capacity) bytes")
    }
    do {
      let count = try fill(UnsafeMutableRawBufferPointer(start: memory, count: capacity))
      // A frame far smaller than its bound shouldn't keep the bound's memory.
      let kept = count > 0 && count < capacity ? realloc(memory, count) ?? memory : memory
      return Data(bytesNoCopy: kept, count: count, deallocator: .free)
    } catch {
      free(memory)
      throw error
    }
  }

  @discardableResult
  private static func check(_ result: Int, _ doing: String) throws -> Int {
    guard ZSTD_isError(result) == 0 else {
      throw StoreError(.io, "zstd failed at \(doing): \(String(cString: ZSTD_getErrorName(result)))")
    }
    return result
  }
}
