import Foundation

/// Memory that grows when asked, and is written to without any check.
struct RawOutput {
  private var start: UnsafeMutableRawPointer
  private var next: UnsafeMutableRawPointer
  private var capacity: Int

  init(capacity: Int) {
    // malloc fails only when the system has nothing left, and then nothing can go on.
    guard let memory = malloc(capacity) else { preconditionFailure("out of memory") }
    start = memory
    next = memory
    self.capacity = capacity
  }

  var count: Int { next - start }
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  @inline(__always) mutating func reserve(_ more: Int) {
    if count + more > capacity { grow(more) }
  }

  @inline(never) private mutating func grow(_ more: Int) {
    let used = count
    capacity = capacity * 2 + more
    guard let memory = realloc(start, capacity) else { preconditionFailure("out of memory") }
    start = memory
    next = memory + used
  }

  @inline(__always) mutating func putFixed<T: BitwiseCopyable>(_ value: T) {
    next.storeBytes(of: value, as: T.self)
    next += MemoryLayout<T>.size
  }

  @inline(__always) mutating func put(_ number: Int) {
    let value = UInt64(truncatingIfNeeded: number)
    if value < 128 { return putFixed(UInt8(truncatingIfNeeded: value << 1 | 1)) }
    let bytes = (70 - value.leadingZeroBitCount) / 7
    if bytes > 8 {
      putFixed(UInt8(0))
      return putFixed(value)
    }
    next.storeBytes(
      of: value &<< UInt64(truncatingIfNeeded: bytes) | 1 &<< UInt64(truncatingIfNeeded: bytes - 1), as: UInt64.self)
    next += bytes
  }

  @inline(__always) mutating func putSigned(_ number: Int) { put(number << 1 ^ number >> 63) }

  /// A whole count of thousandths as that count, anything else in full.
  @inline(__always) mutating func put(_ number: Double) {
    if abs(number) < 0x1p37 {
      let count = Int(number * 1_000 + (number < 0 ? -0.5 : 0.5))
      if (Double(count) / 1_000).bitPattern == number.bitPattern { return put((count << 1 ^ count >> 63) << 1) }
    }
    put(1)
    putFixed(number)
  }

  @inline(__always) mutating func put(_ bytes: UnsafeRawBufferPointer) {
    next.copyMemory(from: bytes.baseAddress ?? UnsafeRawPointer(next), byteCount: bytes.count)
    next += bytes.count
  }

  @inline(__always) mutating func put(_ text: String) {
    let isPut: Void? = text.utf8.withContiguousStorageIfAvailable {
      put($0.count)
      put(UnsafeRawBufferPointer($0))
    }
    if isPut == nil { putSlowly(text) }
  }

  /// A string whose UTF-8 doesn't stand in one piece: one of Objective-C's.
  @inline(never) private mutating func putSlowly(_ text: String) {
    put(text.utf8.count)
    for byte in text.utf8 { putFixed(byte) }
  }

  /// The bytes, without a copy.
  func taken() -> Data { Data(bytesNoCopy: start, count: count, deallocator: .free) }

  func release() { free(start) }
}

/// Memory that is read without any check; who reads asks now and then how much is left. It may read as far ahead as an
/// archive's trailer is long.
struct RawInput {
  private var next: UnsafeRawPointer
  private let end: UnsafeRawPointer

  init(_ start: UnsafeRawPointer, end: UnsafeRawPointer) {
    next = start
    self.end = end
  }

  /// Negative once too much was read.
  var left: Int { end - next }

  @inline(__always) mutating func takeFixed<T: BitwiseCopyable>(_: T.Type) -> T {
    defer { next += MemoryLayout<T>.size }
    return next.loadUnaligned(as: T.self)
  }

  @inline(__always) mutating func take() -> Int {
    let first = next.load(as: UInt8.self)
    if first & 1 == 1 {
      next += 1
      return Int(first >> 1)
    }
    if first == 0 {
      next += 1
      return Int(truncatingIfNeeded: takeFixed(UInt64.self))
    }
    let bytes = first.trailingZeroBitCount + 1
    let raised = next.loadUnaligned(as: UInt64.self) &<< UInt64(truncatingIfNeeded: 64 - 8 * bytes)
    next += bytes
    return Int(truncatingIfNeeded: raised &>> UInt64(truncatingIfNeeded: 64 - 7 * bytes))
  }

  @inline(__always) mutating func takeSigned() -> Int {
    let value = UInt(bitPattern: take())
    return Int(bitPattern: value >> 1 ^ (0 &- (value & 1)))
  }

  /// Not a number for a form that isn't known.
  @inline(__always) mutating func takeDouble() -> Double {
    let value = UInt(bitPattern: take())
    if value & 1 == 1 { return value == 1 ? takeFixed(Double.self) : .nan }
    return Double(Int(bitPattern: value >> 2 ^ (0 &- (value >> 1 & 1)))) / 1_000
  }

  @inline(__always) mutating func takeText() -> String? {
    let length = take()
    guard length >= 0, length <= left else { return nil }
    defer { next += length }
    return String(decoding: UnsafeRawBufferPointer(start: next, count: length), as: UTF8.self)
  }
}
