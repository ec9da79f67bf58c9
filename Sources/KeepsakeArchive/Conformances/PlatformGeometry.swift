#if canImport(CoreGraphics)
public import CoreGraphics

/// Encoded as a vector of two Doubles, like `CGPoint`.
extension CGVector: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.vector(.double, count: 2) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try SIMD2(Double(dx), Double(dy)).encode(to: &writer) }
  public init(from reader: inout ArchiveReader) throws {
    let pair = try SIMD2<Double>(from: &reader)
    self.init(dx: pair.x, dy: pair.y)
  }
}

/// Encoded as three columns of two Doubles: (a, b), (c, d), (tx, ty).
extension CGAffineTransform: ArchivableMatrix {
  public static var archiveColumnCount: Int { 3 }
  public var archiveColumns: [SIMD2<Double>] {
    [SIMD2(Double(a), Double(b)), SIMD2(Double(c), Double(d)), SIMD2(Double(tx), Double(ty))]
  }
  public init(archiveColumns columns: [SIMD2<Double>]) {
    self.init(
      a: columns[0].x, b: columns[0].y, c: columns[1].x, d: columns[1].y, tx: columns[2].x, ty: columns[2].y)
  }
}
#endif
