/// A number type for the elements of a vector, encoded as its bits.
public protocol ArchivableScalar: SIMDScalar, Hashable, Codable {
  /// The integer type of the same width.
  associatedtype ArchivableBits: FixedWidthInteger
  /// The code of the scalar type in archives.
  static var archiveScalarCode: UInt8 { get }
  /// The number's bits.
  var archiveBits: ArchivableBits { get }
  /// Creates the number that has these bits.
  ///
  /// - Parameter archiveBits: The bits, as `archiveBits` returned them.
  init(archiveBits: ArchivableBits)
}

extension ArchivableScalar where Self: ArchivableInteger, ArchivableBits == Self {
  public static var archiveScalarCode: UInt8 { archiveCode }
  @inlinable public var archiveBits: Self { self }
  @inlinable public init(archiveBits: Self) { self = archiveBits }
}

extension Int8: ArchivableScalar { public typealias ArchivableBits = Int8 }
extension Int16: ArchivableScalar { public typealias ArchivableBits = Int16 }
extension Int32: ArchivableScalar { public typealias ArchivableBits = Int32 }
extension Int64: ArchivableScalar { public typealias ArchivableBits = Int64 }
extension UInt8: ArchivableScalar { public typealias ArchivableBits = UInt8 }
extension UInt16: ArchivableScalar { public typealias ArchivableBits = UInt16 }
extension UInt32: ArchivableScalar { public typealias ArchivableBits = UInt32 }
extension UInt64: ArchivableScalar { public typealias ArchivableBits = UInt64 }

extension Int: ArchivableScalar {
  public static var archiveScalarCode: UInt8 { WireCode.int64.rawValue }
  @inlinable public var archiveBits: Int64 { Int64(self) }
  @inlinable public init(archiveBits: Int64) { self = Int(clamping: archiveBits) }
}

extension Float: ArchivableScalar {
  public static var archiveScalarCode: UInt8 { WireCode.float.rawValue }
  @inlinable public var archiveBits: UInt32 { bitPattern }
  @inlinable public init(archiveBits: UInt32) { self.init(bitPattern: archiveBits) }
}

extension Double: ArchivableScalar {
  public static var archiveScalarCode: UInt8 { WireCode.double.rawValue }
  @inlinable public var archiveBits: UInt64 { bitPattern }
  @inlinable public init(archiveBits: UInt64) { self.init(bitPattern: archiveBits) }
}

/// Encoded as the scalars one after the other, each in its full width.
extension SIMD where Scalar: ArchivableScalar {
  static func vectorType(in schema: ArchiveSchema) -> ArchiveWireType {
    schema.vector(WireCode(rawValue: Scalar.archiveScalarCode) ?? .double, count: scalarCount)
  }

  @inlinable @inline(__always) func writeScalars(to writer: inout ArchiveWriter) {
    for index in 0..<Self.scalarCount { writer.putFixed(self[index].archiveBits) }
  }

  @inlinable @inline(__always) static func readScalars(from reader: inout ArchiveReader) throws -> Self {
    if !reader.isExact { return try reader.readMappedVector(Self.self) }
    var value = Self()
    for index in 0..<scalarCount {
      value[index] = Scalar(archiveBits: try reader.takeFixed(Scalar.ArchivableBits.self))
    }
    return value
  }
}

extension SIMD2: Archivable where Scalar: ArchivableScalar {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { vectorType(in: schema) }
  @inlinable public static var archiveIsKeyed: Bool { false }
  @inlinable @inline(__always) public func encode(to writer: inout ArchiveWriter) throws { writeScalars(to: &writer) }
  @inlinable @inline(__always) public init(from reader: inout ArchiveReader) throws {
    self = try Self.readScalars(from: &reader)
  }
}

extension SIMD3: Archivable where Scalar: ArchivableScalar {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { vectorType(in: schema) }
  @inlinable public static var archiveIsKeyed: Bool { false }
  @inlinable @inline(__always) public func encode(to writer: inout ArchiveWriter) throws { writeScalars(to: &writer) }
  @inlinable @inline(__always) public init(from reader: inout ArchiveReader) throws {
    self = try Self.readScalars(from: &reader)
  }
}

extension SIMD4: Archivable where Scalar: ArchivableScalar {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { vectorType(in: schema) }
  @inlinable public static var archiveIsKeyed: Bool { false }
  @inlinable @inline(__always) public func encode(to writer: inout ArchiveWriter) throws { writeScalars(to: &writer) }
  @inlinable @inline(__always) public init(from reader: inout ArchiveReader) throws {
    self = try Self.readScalars(from: &reader)
  }
}

extension ArchiveReader {
  /// Reads a vector with other scalars. The lengths must be equal; each number must be representable exactly in the
  /// other type, except for rounding a Double to a Float.
  @usableFromInline mutating func readMappedVector<V: SIMD>(_ type: V.Type) throws -> V
  where V.Scalar: ArchivableScalar {
    try unwrapPresentOptional("vector")
    let wire = core.nodes[Int(current)]
    guard wire.code == .vector, Int(wire.second) == V.scalarCount,
      let saved = WireCode(rawValue: UInt8(truncatingIfNeeded: wire.first))
    else { throw mismatch("\(V.self)") }
    var value = V()
    for index in 0..<V.scalarCount {
      if saved.rawValue == V.Scalar.archiveScalarCode {
        value[index] = V.Scalar(archiveBits: try takeFixed(V.Scalar.ArchivableBits.self))
      } else if saved == .float, let scalar = Double(Float(bitPattern: try takeFixed(UInt32.self))) as? V.Scalar {
        value[index] = scalar
      } else if saved == .double, let scalar = try narrow(Double(bitPattern: try takeFixed(UInt64.self))) as? V.Scalar {
        value[index] = scalar
      } else if saved.isInteger {
        value[index] = try takeVectorInteger(saved, as: V.Scalar.self)
      } else {
        throw mismatch("\(V.self)")
      }
    }
    return value
  }

  /// Reads an integer of a vector, stored in its full width, as another number type that represents it exactly.
  private mutating func takeVectorInteger<T: ArchivableScalar>(_ saved: WireCode, as _: T.Type) throws -> T {
    blockWidth = saved.scalarBytes
    defer { blockWidth = 0 }
    let (negative, positive) = try takeBlockInteger(saved)
    func fitting<I: BinaryInteger>(_: I.Type) -> T? {
      (negative < 0 ? I(exactly: negative) : I(exactly: positive)) as? T
    }
    func fitting<F: BinaryFloatingPoint>(_: F.Type) -> T? {
      (negative < 0 ? F(exactly: negative) : F(exactly: positive)) as? T
    }
    let value: T? =
      if let integer = T.self as? any BinaryInteger.Type {
        fitting(integer)
      } else if let number = T.self as? any BinaryFloatingPoint.Type {
        fitting(number)
      } else {
        nil
      }
    guard let value else {
      throw ArchiveError(
        .mismatch, "The saved number \(negative < 0 ? "\(negative)" : "\(positive)") doesn't fit into \(T.self)",
        offset: offset)
    }
    return value
  }
}
