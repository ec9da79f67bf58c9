package import Foundation
import Synchronization
#if SYSTEM_ZSTD
import CZstd
#else
import libzstd
#endif

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

/// Frames in files, where nothing but the bytes describes them.
extension Zstd {
  /// The first bytes of every zstd frame.
  package static let frameMagic: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD]

  /// All levels, for callers that want small output rather than speed. Reading the highest ones needs a window of 128
  /// MiB.
  package static let levels: ClosedRange<Int32> = 1...22

  /// 128 MiB: the window that zstd's own tools accept by default.
  private static let maximumFileWindowLog: Int32 = 27

  /// The plain bytes per byte of the frame for which memory is allocated up front. Saves seldom compress further, and a
  /// frame may claim anything.
  private static let believedRatio = 16

  /// Returns the plain bytes of exactly one frame.
  ///
  /// - Throws: `StoreError`: `tooLarge` if they are more than `maximumBytes`, before more memory than that is
  ///   allocated; `damaged` for a frame that is cut off, altered, or followed by other bytes.
  package static func expand(_ frame: Data, maximumBytes: Int) throws -> Data {
    try frame.withUnsafeBytes { source in
      guard source.starts(with: frameMagic) else { throw StoreError(.damaged, "the data isn't a zstd frame") }
      let length = ZSTD_findFrameCompressedSize(source.baseAddress, source.count)
      guard ZSTD_isError(length) == 0, length == source.count else {
        throw StoreError(.damaged, "the zstd frame is cut off, altered or followed by other bytes")
      }
      // Only a claim: too large a length is refused immediately, too small a one when the bytes come.
      let declared = UInt64(ZSTD_getFrameContentSize(source.baseAddress, source.count))
      let (unknown, unreadable) = (UInt64.max, UInt64.max - 1)
      guard declared != unreadable else { throw StoreError(.damaged, "the zstd frame's header is damaged") }
      guard declared == unknown || declared <= UInt64(max(maximumBytes, 0)) else { throw tooLarge(maximumBytes) }
      // What a frame doesn't state is counted first, so that no memory is taken for more than is allowed.
      let capacity =
        declared == unknown
        ? try count(source, maximumBytes: maximumBytes) : min(source.count &* believedRatio, Int(declared))
      return try expand(source, capacity: max(capacity, 1 << 12), maximumBytes: maximumBytes)
    }
  }

  /// Returns the first plain bytes of a frame, at most `count`: fewer if it ends before, or can't be decoded further.
  /// Costs decoding one block.
  package static func beginning(of frame: Data, count: Int) -> Data {
    guard frame.starts(with: frameMagic), count > 0, let context = ZSTD_createDCtx() else { return Data() }
    defer { ZSTD_freeDCtx(context) }
    return frame.withUnsafeBytes { source in
      var plain = Data(count: count)
      let length = plain.withUnsafeMutableBytes { target in
        var input = ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: 0)
        var output = ZSTD_outBuffer(dst: target.baseAddress, size: count, pos: 0)
        var before = -1
        // A header may be taken in a step of its own.
        while output.pos < count, input.pos != before {
          before = input.pos
          let result = ZSTD_decompressStream(context, &output, &input)
          guard ZSTD_isError(result) == 0, result != 0 else { break }
        }
        return output.pos
      }
      return plain.prefix(length)
    }
  }

  private static func expand(_ source: UnsafeRawBufferPointer, capacity first: Int, maximumBytes: Int) throws -> Data {
    let decoder = try Decoder()
    var capacity = first
    guard var memory = malloc(capacity) else {
      throw StoreError(.io, "there is not enough memory for \(capacity) bytes")
    }
    var isDone = false
    defer { if !isDone { free(memory) } }
    var input = ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: 0)
    var output = ZSTD_outBuffer(dst: memory, size: capacity, pos: 0)
    while try !decoder.step(&input, &output) {
      guard output.pos <= maximumBytes else { throw tooLarge(maximumBytes) }
      guard output.pos == capacity else { continue }
      // One byte more than allowed shows that there is more.
      capacity = capacity > maximumBytes / 2 ? min(maximumBytes, Int.max - 1) + 1 : capacity * 2
      guard let larger = realloc(memory, capacity) else {
        throw StoreError(.io, "there is not enough memory for \(capacity) bytes")
      }
      memory = larger
      (output.dst, output.size) = (memory, capacity)
    }
    guard output.pos <= maximumBytes else { throw tooLarge(maximumBytes) }
    guard input.pos == input.size else { throw StoreError(.damaged, "the zstd frame is followed by other bytes") }
    isDone = true
    guard output.pos > 0 else {
      free(memory)
      return Data()
    }
    let kept = realloc(memory, output.pos) ?? memory
    return Data(bytesNoCopy: kept, count: output.pos, deallocator: .free)
  }

  /// Returns the number of plain bytes in a frame whose header doesn't state it. Keeps none of them.
  private static func count(_ source: UnsafeRawBufferPointer, maximumBytes: Int) throws -> Int {
    let decoder = try Decoder()
    var input = ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: 0)
    var total = 0
    return try withUnsafeTemporaryAllocation(byteCount: 128 << 10, alignment: 16) { chunk in
      while true {
        var output = ZSTD_outBuffer(dst: chunk.baseAddress, size: chunk.count, pos: 0)
        let isEnd = try decoder.step(&input, &output)
        total += output.pos
        guard total <= maximumBytes else { throw tooLarge(maximumBytes) }
        if isEnd { return total }
      }
    }
  }

  /// Decodes one frame step by step.
  private struct Decoder: ~Copyable {
    private let context: OpaquePointer

    init() throws {
      guard let context = ZSTD_createDCtx() else { throw StoreError(.io, "there is not enough memory to decompress") }
      guard ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, maximumFileWindowLog)) == 0 else {
        ZSTD_freeDCtx(context)
        throw StoreError(.io, "zstd rejects its own window size")
      }
      self.context = context
    }

    deinit { ZSTD_freeDCtx(context) }

    /// Decodes as much as there is input and room for. Returns whether the frame is complete.
    func step(_ input: inout ZSTD_inBuffer, _ output: inout ZSTD_outBuffer) throws -> Bool {
      let before = (input.pos, output.pos)
      let result = ZSTD_decompressStream(context, &output, &input)
      if ZSTD_isError(result) != 0 {
        guard ZSTD_getErrorCode(result) != ZSTD_error_frameParameter_windowTooLarge else {
          throw StoreError(.tooLarge, "the zstd frame needs a window of more than \(1 << maximumFileWindowLog) bytes")
        }
        throw StoreError(.damaged, "the zstd frame can't be decoded: \(String(cString: ZSTD_getErrorName(result)))")
      }
      guard result == 0 || before != (input.pos, output.pos) || output.pos == output.size else {
        throw StoreError(.damaged, "the zstd frame ends too early")
      }
      return result == 0
    }
  }

  private static func tooLarge(_ maximumBytes: Int) -> StoreError {
    StoreError(.tooLarge, "the zstd frame contains more than \(maximumBytes) bytes")
  }
}
