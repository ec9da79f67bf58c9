/// Encoded as its bounds, like the fields of a struct, so that an `Int32` range can be read as an `Int` range.
/// Half-open and closed ranges have different keys, so that neither is read as the other.
extension Range: Archivable where Bound: Archivable {
  public static var archiveName: String { "Range<" + Bound.archiveName + ">" }
  public static var archiveIsKeyed: Bool { false }

  public static func archiveFields(_ fields: ArchiveFieldList) {
    fields.describe(Self.self)
    fields.field("from", Bound.self)
    fields.field("upTo", Bound.self)
  }

  public func encode(to writer: inout ArchiveWriter) throws {
    try writer.writeField(lowerBound)
    try writer.writeField(upperBound)
  }

  public init(from reader: inout ArchiveReader) throws {
    let (lower, upper) = try reader.readPair(Self.self, Bound.self)
    guard lower <= upper else { throw reader.damaged("A range ends before it begins") }
    self = lower..<upper
  }
}

extension ClosedRange: Archivable where Bound: Archivable {
  public static var archiveName: String { "ClosedRange<" + Bound.archiveName + ">" }
  public static var archiveIsKeyed: Bool { false }

  public static func archiveFields(_ fields: ArchiveFieldList) {
    fields.describe(Self.self)
    fields.field("from", Bound.self)
    fields.field("through", Bound.self)
  }

  public func encode(to writer: inout ArchiveWriter) throws {
    try writer.writeField(lowerBound)
    try writer.writeField(upperBound)
  }

  public init(from reader: inout ArchiveReader) throws {
    let (lower, upper) = try reader.readPair(Self.self, Bound.self)
    guard lower <= upper else { throw reader.damaged("A range ends before it begins") }
    self = lower...upper
  }
}

extension PartialRangeFrom: Archivable where Bound: Archivable {
  public static var archiveName: String { "PartialRangeFrom<" + Bound.archiveName + ">" }
  public static var archiveIsKeyed: Bool { false }

  public static func archiveFields(_ fields: ArchiveFieldList) {
    fields.describe(Self.self)
    fields.field("from", Bound.self)
  }

  public func encode(to writer: inout ArchiveWriter) throws { try writer.writeField(lowerBound) }

  // The operators `...x` and `x...` trap on a NaN bound; the initialisers don't.
  public init(from reader: inout ArchiveReader) throws { self.init(try reader.readOne(Self.self, Bound.self)) }
}

extension PartialRangeUpTo: Archivable where Bound: Archivable {
  public static var archiveName: String { "PartialRangeUpTo<" + Bound.archiveName + ">" }
  public static var archiveIsKeyed: Bool { false }

  public static func archiveFields(_ fields: ArchiveFieldList) {
    fields.describe(Self.self)
    fields.field("upTo", Bound.self)
  }

  public func encode(to writer: inout ArchiveWriter) throws { try writer.writeField(upperBound) }
  public init(from reader: inout ArchiveReader) throws { self.init(try reader.readOne(Self.self, Bound.self)) }
}

extension PartialRangeThrough: Archivable where Bound: Archivable {
  public static var archiveName: String { "PartialRangeThrough<" + Bound.archiveName + ">" }
  public static var archiveIsKeyed: Bool { false }

  public static func archiveFields(_ fields: ArchiveFieldList) {
    fields.describe(Self.self)
    fields.field("through", Bound.self)
  }

  public func encode(to writer: inout ArchiveWriter) throws { try writer.writeField(upperBound) }
  public init(from reader: inout ArchiveReader) throws { self.init(try reader.readOne(Self.self, Bound.self)) }
}

extension ArchiveReader {
  /// Reads the only field of a struct that has no generated initialiser.
  mutating func readOne<Owner: Archivable, T: Archivable>(_ owner: Owner.Type, _ type: T.Type) throws -> T {
    if isExact { return try T.archiveRead(from: &self) }
    var fields = try enter(owner)
    let value: T = try field(0, &fields)
    try leave(&fields)
    return value
  }

  /// Reads both fields of a struct that has no generated initialiser.
  mutating func readPair<Owner: Archivable, T: Archivable>(_ owner: Owner.Type, _ type: T.Type) throws -> (T, T) {
    if isExact {
      let first = try T.archiveRead(from: &self)
      return (first, try T.archiveRead(from: &self))
    }
    var fields = try enter(owner)
    let first: T = try field(0, &fields)
    let second: T = try field(1, &fields)
    try leave(&fields)
    return (first, second)
  }
}
