import Foundation

/// A type that is stored in a coded tree as a single value, instead of by its own `encode(to:)`.
protocol CodedPrimitive {
  var codedLeaf: CodedLeaf { get }
  /// Returns nil if the saved value isn't of this type.
  init?(_ leaf: CodedLeaf)
  static var isNumber: Bool { get }
}

extension CodedPrimitive {
  static var isNumber: Bool { false }
}

/// An integer type; all of them share the same methods.
protocol CodedInteger: CodedPrimitive, FixedWidthInteger {}

extension CodedInteger {
  var codedLeaf: CodedLeaf { CodedLeaf(self) }
  static var isNumber: Bool { true }
  init?(_ leaf: CodedLeaf) {
    guard let value = leaf.integer(Self.self) else { return nil }
    self = value
  }
}

extension Int: CodedInteger {}
extension Int8: CodedInteger {}
extension Int16: CodedInteger {}
extension Int32: CodedInteger {}
extension Int64: CodedInteger {}
extension Int128: CodedInteger {}
extension UInt: CodedInteger {}
extension UInt8: CodedInteger {}
extension UInt16: CodedInteger {}
extension UInt32: CodedInteger {}
extension UInt64: CodedInteger {}
extension UInt128: CodedInteger {}

extension Bool: CodedPrimitive {
  var codedLeaf: CodedLeaf { .bool(self) }
  init?(_ leaf: CodedLeaf) {
    guard case .bool(let value) = leaf else { return nil }
    self = value
  }
}

extension Double: CodedPrimitive {
  var codedLeaf: CodedLeaf { .double(self) }
  static var isNumber: Bool { true }
  init?(_ leaf: CodedLeaf) {
    guard let value = leaf.double else { return nil }
    self = value
  }
}

extension Float: CodedPrimitive {
  var codedLeaf: CodedLeaf { .float(self) }
  static var isNumber: Bool { true }

  /// A loss of precision is accepted; a finite number outside the range is rejected.
  init?(_ leaf: CodedLeaf) {
    // Not converted through Double, which would make signalling NaNs quiet.
    if case .float(let value) = leaf {
      self = value
      return
    }
    guard let value = leaf.double else { return nil }
    self.init(value)
    if !isFinite && value.isFinite { return nil }
  }
}

extension String: CodedPrimitive {
  var codedLeaf: CodedLeaf { .string(self) }
  init?(_ leaf: CodedLeaf) {
    switch leaf {
    case .string(let text), .url(let text): self = text
    case .uuid(let uuid): self = uuid.uuidString
    default: return nil
    }
  }
}

extension Data: CodedPrimitive {
  var codedLeaf: CodedLeaf { .data(self) }
  init?(_ leaf: CodedLeaf) {
    guard case .data(let data) = leaf else { return nil }
    self = data
  }
}

extension Date: CodedPrimitive {
  var codedLeaf: CodedLeaf { .date(self) }
  init?(_ leaf: CodedLeaf) {
    guard let seconds = leaf.double else { return nil }
    self.init(timeIntervalSinceReferenceDate: seconds)
  }
}

extension UUID: CodedPrimitive {
  var codedLeaf: CodedLeaf { .uuid(self) }
  init?(_ leaf: CodedLeaf) {
    switch leaf {
    case .uuid(let uuid): self = uuid
    case .string(let text): self.init(uuidString: text)
    default: return nil
    }
  }
}

extension URL: CodedPrimitive {
  /// The base of a relative URL isn't stored separately, as elsewhere in the archive.
  var codedLeaf: CodedLeaf { .url(absoluteString) }
  init?(_ leaf: CodedLeaf) {
    switch leaf {
    case .url(let text), .string(let text): self.init(string: text)
    default: return nil
    }
  }
}

extension Decimal: CodedPrimitive {
  var codedLeaf: CodedLeaf { .decimal(self) }
  static var isNumber: Bool { true }

  /// A binary fraction is converted by its shortest digits, as if it had come through JSON.
  init?(_ leaf: CodedLeaf) {
    switch leaf {
    case .decimal(let value): self = value
    case .integer(let value): self.init(value)
    case .unsigned(let value): self.init(value)
    case .int128, .uint128:
      // Rejects integers with more digits than a Decimal holds.
      guard let value = Decimal(string: leaf.text), "\(value)" == leaf.text else { return nil }
      self = value
    case .double(let value) where value.isFinite: self.init(string: "\(value)")
    case .float(let value) where value.isFinite: self.init(string: "\(value)")
    default: return nil
    }
  }
}

// MARK: Telling them apart

// Types are compared one by one, because checking a protocol conformance and casting take longer than everything else.
// If `T` is the same type as another, the values have the same bits and can be reinterpreted.

extension CodedLeaf {
  /// Returns nil for values that aren't primitive.
  static func of<T>(_ value: T) -> CodedLeaf? {
    if T.self == Int.self { return unsafeBitCast(value, to: Int.self).codedLeaf }
    if T.self == String.self { return unsafeBitCast(value, to: String.self).codedLeaf }
    if T.self == Double.self { return unsafeBitCast(value, to: Double.self).codedLeaf }
    if T.self == Float.self { return unsafeBitCast(value, to: Float.self).codedLeaf }
    if T.self == Bool.self { return unsafeBitCast(value, to: Bool.self).codedLeaf }
    if T.self == Int64.self { return unsafeBitCast(value, to: Int64.self).codedLeaf }
    if T.self == Int32.self { return unsafeBitCast(value, to: Int32.self).codedLeaf }
    if T.self == Int16.self { return unsafeBitCast(value, to: Int16.self).codedLeaf }
    if T.self == Int8.self { return unsafeBitCast(value, to: Int8.self).codedLeaf }
    if T.self == UInt.self { return unsafeBitCast(value, to: UInt.self).codedLeaf }
    if T.self == UInt64.self { return unsafeBitCast(value, to: UInt64.self).codedLeaf }
    if T.self == UInt32.self { return unsafeBitCast(value, to: UInt32.self).codedLeaf }
    if T.self == UInt16.self { return unsafeBitCast(value, to: UInt16.self).codedLeaf }
    if T.self == UInt8.self { return unsafeBitCast(value, to: UInt8.self).codedLeaf }
    if T.self == Date.self { return unsafeBitCast(value, to: Date.self).codedLeaf }
    if T.self == UUID.self { return unsafeBitCast(value, to: UUID.self).codedLeaf }
    if T.self == Data.self { return unsafeBitCast(value, to: Data.self).codedLeaf }
    if T.self == URL.self { return unsafeBitCast(value, to: URL.self).codedLeaf }
    if T.self == Decimal.self { return unsafeBitCast(value, to: Decimal.self).codedLeaf }
    if T.self == Int128.self { return unsafeBitCast(value, to: Int128.self).codedLeaf }
    if T.self == UInt128.self { return unsafeBitCast(value, to: UInt128.self).codedLeaf }
    return nil
  }
}

/// The underlying error of a number that doesn't fit into its type.
package struct NumberMisfit: Error {
  /// The type into which it should fit.
  package let type: any Any.Type
}

extension CodedReading {
  static func isPrimitive<T>(_ type: T.Type) -> Bool {
    let id = ObjectIdentifier(type)
    return id == ObjectIdentifier(Int.self) || id == ObjectIdentifier(String.self)
      || id == ObjectIdentifier(Double.self)
      || id == ObjectIdentifier(Float.self) || id == ObjectIdentifier(Bool.self) || id == ObjectIdentifier(Int64.self)
      || id == ObjectIdentifier(Int32.self) || id == ObjectIdentifier(Int16.self) || id == ObjectIdentifier(Int8.self)
      || id == ObjectIdentifier(UInt.self) || id == ObjectIdentifier(UInt64.self) || id == ObjectIdentifier(UInt32.self)
      || id == ObjectIdentifier(UInt16.self) || id == ObjectIdentifier(UInt8.self) || id == ObjectIdentifier(Date.self)
      || id == ObjectIdentifier(UUID.self) || id == ObjectIdentifier(Data.self) || id == ObjectIdentifier(URL.self)
      || id == ObjectIdentifier(Decimal.self) || id == ObjectIdentifier(Int128.self)
      || id == ObjectIdentifier(UInt128.self)
  }

  /// Reads a value of a primitive type, from its single form or by its own `init(from:)`. Takes much stack in a debug
  /// build, so other types, which nest, don't call it.
  func primitive<T: Decodable>(_ type: T.Type) throws -> T {
    if T.self == Int.self { return unsafeBitCast(try read(Int.self), to: T.self) }
    if T.self == String.self { return unsafeBitCast(try read(String.self), to: T.self) }
    if T.self == Double.self { return unsafeBitCast(try read(Double.self), to: T.self) }
    if T.self == Float.self { return unsafeBitCast(try read(Float.self), to: T.self) }
    if T.self == Bool.self { return unsafeBitCast(try read(Bool.self), to: T.self) }
    if T.self == Int64.self { return unsafeBitCast(try read(Int64.self), to: T.self) }
    if T.self == Int32.self { return unsafeBitCast(try read(Int32.self), to: T.self) }
    if T.self == Int16.self { return unsafeBitCast(try read(Int16.self), to: T.self) }
    if T.self == Int8.self { return unsafeBitCast(try read(Int8.self), to: T.self) }
    if T.self == UInt.self { return unsafeBitCast(try read(UInt.self), to: T.self) }
    if T.self == UInt64.self { return unsafeBitCast(try read(UInt64.self), to: T.self) }
    if T.self == UInt32.self { return unsafeBitCast(try read(UInt32.self), to: T.self) }
    if T.self == UInt16.self { return unsafeBitCast(try read(UInt16.self), to: T.self) }
    if T.self == UInt8.self { return unsafeBitCast(try read(UInt8.self), to: T.self) }
    if T.self == Date.self { return unsafeBitCast(try read(Date.self), to: T.self) }
    if T.self == UUID.self { return unsafeBitCast(try read(UUID.self), to: T.self) }
    if T.self == Int128.self { return unsafeBitCast(try read(Int128.self), to: T.self) }
    if T.self == UInt128.self { return unsafeBitCast(try read(UInt128.self), to: T.self) }
    if T.self == Data.self, let value = try readOneForm(Data.self) { return unsafeBitCast(value, to: T.self) }
    if T.self == URL.self, let value = try readOneForm(URL.self) { return unsafeBitCast(value, to: T.self) }
    if T.self == Decimal.self, let value = try readOneForm(Decimal.self) { return unsafeBitCast(value, to: T.self) }
    return try T(from: CodedDecoder(self))
  }

  private func read<P: CodedPrimitive>(_ type: P.Type) throws -> P {
    if let value = try readOneForm(type) { return value }
    guard let leaf = try leaf() else { throw misfit(type, "a list or an object") }
    if leaf.isNumber && P.isNumber {
      throw DecodingError.dataCorrupted(
        .init(
          codingPath: codingPath, debugDescription: "the saved number \(leaf.text) doesn't fit into \(type)",
          underlyingError: NumberMisfit(type: type)))
    }
    throw misfit(type, leaf.text)
  }

  /// Returns nil if another form was saved, such as a URL's base and relative part.
  private func readOneForm<P: CodedPrimitive>(_ type: P.Type) throws -> P? {
    guard let leaf = try leaf() else { return nil }
    if case .null = leaf { throw missing(type) }
    return P(leaf)
  }

  private func leaf() throws -> CodedLeaf? { try entry.map { try tree.leaf($0) } ?? .null }
}
