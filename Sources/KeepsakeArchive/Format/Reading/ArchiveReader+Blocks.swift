// A block of integers may be read as elements other than integers: optional integers, or floating-point numbers.
extension ArchiveReader {
  /// Returns whether an array was saved as a block and can be read as a block.
  @usableFromInline func isBlock(_ element: Int32, as wanted: UInt8) -> Bool {
    guard wanted != 0 else { return false }
    if isExact { return true }
    let saved = core.nodes[Int(element)].code
    return saved.scalarBytes > 0 && saved != .bool && saved.isInteger == WireCode(rawValue: wanted)?.isInteger
  }

  /// Called before an array's elements are read one by one, because numbers in a block have another width than single
  /// ones.
  @usableFromInline mutating func enterElements(_ element: Int32, count: Int) throws {
    guard !isExact, count > 0 else { return }
    let code = core.nodes[Int(element)].code
    if code.isInteger || code == .double, let width = try takeBlockWidth(code, count) { blockWidth = width }
  }

  @usableFromInline mutating func leaveElements() { blockWidth = 0 }

  /// Reads an integer inside a block.
  mutating func takeBlockInteger(_ code: WireCode) throws -> (negative: Int64, positive: UInt64) {
    var bits: UInt64
    switch blockWidth {
    case 1: bits = UInt64(try takeByte())
    case 2: bits = UInt64(try takeFixed(UInt16.self))
    case 4: bits = UInt64(try takeFixed(UInt32.self))
    default: bits = try takeFixed(UInt64.self)
    }
    guard code.isSigned else { return (0, bits) }
    let unused = UInt64(64 - 8 * blockWidth)
    bits <<= unused
    let value = Int64(bitPattern: bits) >> Int64(unused)
    return value < 0 ? (value, 0) : (0, UInt64(value))
  }
}
