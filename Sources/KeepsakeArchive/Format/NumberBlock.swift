/// An array of numbers as one block: floating-point numbers unchanged, integers in the narrowest width that represents
/// all of them, little-endian. Integers of more than one byte are preceded by the width.
///
/// Everything here works on raw memory with a scalar type's code, so that it is compiled once instead of for each
/// element type.
@usableFromInline struct NumberBlock {
  let bytes: UnsafeRawBufferPointer
  let saved: WireCode
  let width: Int
  let wanted: WireCode
  let count: Int
  let offset: Int

  /// Writes `count` numbers of the wanted type to memory.
  @usableFromInline func copy(to target: UnsafeMutableRawBufferPointer) throws {
    guard count > 0 else { return }
    #if _endian(little)
    if saved == wanted, width == wanted.scalarBytes {
      Self.copy(bytes, to: target)
      return
    }
    #endif
    switch wanted {
    case .int8: try fill(target, Int8.self)
    case .int16: try fill(target, Int16.self)
    case .int32: try fill(target, Int32.self)
    case .int64: try fill(target, Int64.self)
    case .uint8: try fill(target, UInt8.self)
    case .uint16: try fill(target, UInt16.self)
    case .uint32: try fill(target, UInt32.self)
    case .uint64: try fill(target, UInt64.self)
    case .float: try fillFloats(target)
    default: try fillDoubles(target)
    }
  }

  /// Copies a block. The target of a large block usually begins a few bytes later in its page than the source does in
  /// its own, because both were just allocated by the system. Processors then delay each load after earlier stores
  /// whose addresses have the same lower twelve bits, and copying takes several times as long. Copying from the end to
  /// the start avoids that.
  private static func copy(_ source: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer) {
    guard let from = source.baseAddress, let to = target.baseAddress, source.count >= 1 << 16,
      (1..<512).contains((Int(bitPattern: to) &- Int(bitPattern: from)) & 4095)
    else { return target.copyMemory(from: source) }
    var end = source.count
    while end >= 64 {
      end &-= 64
      (to + end).copyMemory(from: from + end, byteCount: 64)
    }
    to.copyMemory(from: from, byteCount: end)
  }

  private func fill<T: FixedWidthInteger>(_ target: UnsafeMutableRawBufferPointer, _: T.Type) throws {
    switch (width, saved.isSigned) {
    case (1, false): try convert(target, UInt8.self, T.self)
    case (1, true): try convert(target, Int8.self, T.self)
    case (2, false): try convert(target, UInt16.self, T.self)
    case (2, true): try convert(target, Int16.self, T.self)
    case (4, false): try convert(target, UInt32.self, T.self)
    case (4, true): try convert(target, Int32.self, T.self)
    case (_, false): try convert(target, UInt64.self, T.self)
    case (_, true): try convert(target, Int64.self, T.self)
    }
  }

  private func convert<S: FixedWidthInteger, T: FixedWidthInteger>(
    _ target: UnsafeMutableRawBufferPointer, _: S.Type, _: T.Type
  ) throws {
    for index in 0..<count {
      let value = S(littleEndian: bytes.loadUnaligned(fromByteOffset: index * width, as: S.self))
      guard let fitting = T(exactly: value) else { throw misfit("\(value)", "\(T.self)") }
      target.storeBytes(of: fitting, toByteOffset: index * MemoryLayout<T>.size, as: T.self)
    }
  }

  private func number(_ index: Int) -> Double {
    if saved == .float {
      return Double(
        Float(bitPattern: UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 4, as: UInt32.self))))
    }
    return Double(bitPattern: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self)))
  }

  private func fillFloats(_ target: UnsafeMutableRawBufferPointer) throws {
    for index in 0..<count {
      let value = number(index)
      let narrow = Float(value)
      guard narrow.isFinite || !value.isFinite else { throw misfit("\(value)", "Float") }
      target.storeBytes(of: narrow, toByteOffset: index * 4, as: Float.self)
    }
  }

  private func fillDoubles(_ target: UnsafeMutableRawBufferPointer) throws {
    for index in 0..<count { target.storeBytes(of: number(index), toByteOffset: index * 8, as: Double.self) }
  }

  private func misfit(_ value: String, _ type: String) -> ArchiveError {
    ArchiveError(.mismatch, "The saved number \(value) doesn't fit into \(type)", offset: offset)
  }
}

extension ArchiveReader {
  /// Reads a block of numbers whose count has been read. `element` is their saved type; it is ignored if the reader is
  /// exact.
  @usableFromInline mutating func takeBlock(_ element: Int32, wanted: UInt8, count: Int) throws -> NumberBlock {
    guard let wanted = WireCode(rawValue: wanted) else { throw damaged("A block of numbers has no type") }
    let saved = isExact ? wanted : core.nodes[Int(element)].code
    guard saved.isInteger == wanted.isInteger, saved.scalarBytes > 0, saved != .bool,
      let width = try takeBlockWidth(saved, count)
    else { throw mismatch("[\(wanted)]") }
    let start = offset
    return NumberBlock(
      bytes: try takeBytes(count * width), saved: saved, width: width, wanted: wanted, count: count, offset: start)
  }

  /// Returns the bytes per element if an array of this type is saved as a block; nil for other types.
  mutating func takeBlockWidth(_ code: WireCode, _ count: Int) throws -> Int? {
    let scalar = code.scalarBytes
    guard scalar > 0 else { return nil }
    guard count > 0 else { return scalar }
    var width = scalar
    if code.isInteger && scalar > 1 {
      width = Int(try takeByte())
      guard width == 1 || width == 2 || width == 4 || width == 8, width <= scalar else {
        throw damaged("A block of numbers has an impossible width")
      }
    }
    guard count <= (end - cursor) / width else { throw damaged("A block of numbers extends past the archive's end") }
    return width
  }
}

extension ArchiveWriter {
  /// Writes a block of numbers whose count has been written.
  @usableFromInline mutating func putBlock(_ bytes: UnsafeRawBufferPointer, code: UInt8, count: Int) {
    guard count > 0 else { return }
    switch WireCode(rawValue: code) {
    case .int8, .uint8: putBytes(bytes)
    case .int16: putIntegers(bytes, Int16.self)
    case .int32: putIntegers(bytes, Int32.self)
    case .int64: putIntegers(bytes, Int64.self)
    case .uint16: putIntegers(bytes, UInt16.self)
    case .uint32: putIntegers(bytes, UInt32.self)
    case .uint64: putIntegers(bytes, UInt64.self)
    case .float: putWhole(bytes, UInt32.self)
    default: putWhole(bytes, UInt64.self)
    }
  }

  private mutating func putIntegers<T: FixedWidthInteger>(_ bytes: UnsafeRawBufferPointer, _ type: T.Type) {
    let values = bytes.assumingMemoryBound(to: type)
    var least: T = 0
    var most: T = 0
    for value in values {
      least = min(least, value)
      most = max(most, value)
    }
    func fits<N: FixedWidthInteger>(_: N.Type) -> Bool {
      N.bitWidth < T.bitWidth && N(exactly: least) != nil && N(exactly: most) != nil
    }
    if T.isSigned ? fits(Int8.self) : fits(UInt8.self) {
      putNarrow(values, UInt8.self)
    } else if T.isSigned ? fits(Int16.self) : fits(UInt16.self) {
      putNarrow(values, UInt16.self)
    } else if T.isSigned ? fits(Int32.self) : fits(UInt32.self) {
      putNarrow(values, UInt32.self)
    } else {
      putByte(UInt8(MemoryLayout<T>.size))
      putWhole(bytes, type)
    }
  }

  private mutating func putNarrow<T: FixedWidthInteger, N: FixedWidthInteger>(
    _ values: UnsafeBufferPointer<T>, _: N.Type
  ) {
    let width = MemoryLayout<N>.size
    putByte(UInt8(width))
    var place = room(values.count * width)
    for value in values {
      place.storeBytes(of: N(truncatingIfNeeded: value).littleEndian, as: N.self)
      place += width
    }
    cursor = place
  }

  private mutating func putWhole<T: FixedWidthInteger>(_ bytes: UnsafeRawBufferPointer, _ type: T.Type) {
    #if _endian(little)
    putBytes(bytes)
    #else
    for value in bytes.assumingMemoryBound(to: type) { putFixed(value) }
    #endif
  }
}
