#if canImport(simd)
public import simd

// The names are those of the C types, for which short names such as `float4x4` are aliases. `init(_:)` from an array is
// simd's own initialiser.

extension simd_float2x2: ArchivableMatrix {
  public static var archiveColumnCount: Int { 2 }
  public var archiveColumns: [SIMD2<Float>] { [columns.0, columns.1] }
  public init(archiveColumns: [SIMD2<Float>]) { self.init(archiveColumns) }
}

extension simd_float2x3: ArchivableMatrix {
  public static var archiveColumnCount: Int { 2 }
  public var archiveColumns: [SIMD3<Float>] { [columns.0, columns.1] }
  public init(archiveColumns: [SIMD3<Float>]) { self.init(archiveColumns) }
}

extension simd_float2x4: ArchivableMatrix {
  public static var archiveColumnCount: Int { 2 }
  public var archiveColumns: [SIMD4<Float>] { [columns.0, columns.1] }
  public init(archiveColumns: [SIMD4<Float>]) { self.init(archiveColumns) }
}

extension simd_float3x2: ArchivableMatrix {
  public static var archiveColumnCount: Int { 3 }
  public var archiveColumns: [SIMD2<Float>] { [columns.0, columns.1, columns.2] }
  public init(archiveColumns: [SIMD2<Float>]) { self.init(archiveColumns) }
}

extension simd_float3x3: ArchivableMatrix {
  public static var archiveColumnCount: Int { 3 }
  public var archiveColumns: [SIMD3<Float>] { [columns.0, columns.1, columns.2] }
  public init(archiveColumns: [SIMD3<Float>]) { self.init(archiveColumns) }
}

extension simd_float3x4: ArchivableMatrix {
  public static var archiveColumnCount: Int { 3 }
  public var archiveColumns: [SIMD4<Float>] { [columns.0, columns.1, columns.2] }
  public init(archiveColumns: [SIMD4<Float>]) { self.init(archiveColumns) }
}

extension simd_float4x2: ArchivableMatrix {
  public static var archiveColumnCount: Int { 4 }
  public var archiveColumns: [SIMD2<Float>] { [columns.0, columns.1, columns.2, columns.3] }
  public init(archiveColumns: [SIMD2<Float>]) { self.init(archiveColumns) }
}

extension simd_float4x3: ArchivableMatrix {
  public static var archiveColumnCount: Int { 4 }
  public var archiveColumns: [SIMD3<Float>] { [columns.0, columns.1, columns.2, columns.3] }
  public init(archiveColumns: [SIMD3<Float>]) { self.init(archiveColumns) }
}

extension simd_float4x4: ArchivableMatrix {
  public static var archiveColumnCount: Int { 4 }
  public var archiveColumns: [SIMD4<Float>] { [columns.0, columns.1, columns.2, columns.3] }
  public init(archiveColumns: [SIMD4<Float>]) { self.init(archiveColumns) }
}

extension simd_double2x2: ArchivableMatrix {
  public static var archiveColumnCount: Int { 2 }
  public var archiveColumns: [SIMD2<Double>] { [columns.0, columns.1] }
  public init(archiveColumns: [SIMD2<Double>]) { self.init(archiveColumns) }
}

extension simd_double2x3: ArchivableMatrix {
  public static var archiveColumnCount: Int { 2 }
  public var archiveColumns: [SIMD3<Double>] { [columns.0, columns.1] }
  public init(archiveColumns: [SIMD3<Double>]) { self.init(archiveColumns) }
}

extension simd_double2x4: ArchivableMatrix {
  public static var archiveColumnCount: Int { 2 }
  public var archiveColumns: [SIMD4<Double>] { [columns.0, columns.1] }
  public init(archiveColumns: [SIMD4<Double>]) { self.init(archiveColumns) }
}

extension simd_double3x2: ArchivableMatrix {
  public static var archiveColumnCount: Int { 3 }
  public var archiveColumns: [SIMD2<Double>] { [columns.0, columns.1, columns.2] }
  public init(archiveColumns: [SIMD2<Double>]) { self.init(archiveColumns) }
}

extension simd_double3x3: ArchivableMatrix {
  public static var archiveColumnCount: Int { 3 }
  public var archiveColumns: [SIMD3<Double>] { [columns.0, columns.1, columns.2] }
  public init(archiveColumns: [SIMD3<Double>]) { self.init(archiveColumns) }
}

extension simd_double3x4: ArchivableMatrix {
  public static var archiveColumnCount: Int { 3 }
  public var archiveColumns: [SIMD4<Double>] { [columns.0, columns.1, columns.2] }
  public init(archiveColumns: [SIMD4<Double>]) { self.init(archiveColumns) }
}

extension simd_double4x2: ArchivableMatrix {
  public static var archiveColumnCount: Int { 4 }
  public var archiveColumns: [SIMD2<Double>] { [columns.0, columns.1, columns.2, columns.3] }
  public init(archiveColumns: [SIMD2<Double>]) { self.init(archiveColumns) }
}

extension simd_double4x3: ArchivableMatrix {
  public static var archiveColumnCount: Int { 4 }
  public var archiveColumns: [SIMD3<Double>] { [columns.0, columns.1, columns.2, columns.3] }
  public init(archiveColumns: [SIMD3<Double>]) { self.init(archiveColumns) }
}

extension simd_double4x4: ArchivableMatrix {
  public static var archiveColumnCount: Int { 4 }
  public var archiveColumns: [SIMD4<Double>] { [columns.0, columns.1, columns.2, columns.3] }
  public init(archiveColumns: [SIMD4<Double>]) { self.init(archiveColumns) }
}

/// Encoded as the vector (x, y, z, w), imaginary part first.
extension simd_quatf: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType {
    SIMD4<Float>.archiveWireType(in: schema)
  }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try vector.encode(to: &writer) }
  public init(from reader: inout ArchiveReader) throws { self.init(vector: try SIMD4<Float>(from: &reader)) }
}

/// Encoded as the vector (x, y, z, w), imaginary part first.
extension simd_quatd: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType {
    SIMD4<Double>.archiveWireType(in: schema)
  }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try vector.encode(to: &writer) }
  public init(from reader: inout ArchiveReader) throws { self.init(vector: try SIMD4<Double>(from: &reader)) }
}

#endif
