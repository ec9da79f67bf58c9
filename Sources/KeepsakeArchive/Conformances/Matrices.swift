/// A matrix, encoded as an array of its columns, which are vectors; so Float matrices can be read as Double matrices.
///
/// Apple's simd matrices conform to it. A game's own matrix type needs three lines:
///
///     extension Transform: ArchivableMatrix {
///       static var archiveColumnCount: Int { 3 }
///       var archiveColumns: [SIMD2<Float>] { [x, y, origin] }
///       init(archiveColumns columns: [SIMD2<Float>]) { (x, y, origin) = (columns[0], columns[1], columns[2]) }
///     }
public protocol ArchivableMatrix: Archivable {
  /// The type of a column: a vector.
  associatedtype ArchiveColumn: Archivable
  /// The number of columns, which is fixed.
  static var archiveColumnCount: Int { get }
  /// The columns; there are `archiveColumnCount` of them.
  var archiveColumns: [ArchiveColumn] { get }
  /// Creates a matrix.
  ///
  /// - Parameter archiveColumns: The columns. There are always exactly `archiveColumnCount`.
  init(archiveColumns: [ArchiveColumn])
}

extension ArchivableMatrix {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType {
    [ArchiveColumn].archiveWireType(in: schema)
  }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try archiveColumns.encode(to: &writer) }

  /// Throws `mismatch` if the saved number of columns is different.
  public init(from reader: inout ArchiveReader) throws {
    let columns = try [ArchiveColumn](from: &reader)
    guard columns.count == Self.archiveColumnCount else {
      throw ArchiveError(
        .mismatch, "The archive has a matrix of \(columns.count) columns where \(Self.archiveColumnCount) are expected",
        type: Self.archiveName, offset: reader.offset)
    }
    self.init(archiveColumns: columns)
  }
}
