/// A matrix as its columns: an array of vectors, so that Float matrices are read as Double ones.
///
/// Apple's simd matrices are among them; a game's own matrix type joins with three lines:
///
///     extension Transform: ArchivableMatrix {
///       static var archiveColumnCount: Int { 3 }
///       var archiveColumns: [SIMD2<Float>] { [x, y, origin] }
///       init(archiveColumns columns: [SIMD2<Float>]) { (x, y, origin) = (columns[0], columns[1], columns[2]) }
///     }
public protocol ArchivableMatrix: Archivable {
  /// What a column is: a vector.
  associatedtype ArchiveColumn: Archivable
  /// How many columns there always are.
  static var archiveColumnCount: Int { get }
  /// The columns, `archiveColumnCount` of them.
  var archiveColumns: [ArchiveColumn] { get }
  /// Called with exactly `archiveColumnCount` columns.
  init(archiveColumns: [ArchiveColumn])
}

extension ArchivableMatrix {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { [ArchiveColumn].archiveWireType(in: schema) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try archiveColumns.encode(to: &writer) }

  /// Throws `mismatch` if another number of columns was saved.
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
