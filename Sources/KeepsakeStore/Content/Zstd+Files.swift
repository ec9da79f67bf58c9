import CZstd
package import Foundation

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
