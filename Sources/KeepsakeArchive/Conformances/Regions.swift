public import Foundation

/// Encoded as the identifier, such as "Europe/Zurich" or "GMT+0100".
extension TimeZone: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.string) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try identifier.encode(to: &writer) }

  /// Throws `mismatch` if this device doesn't know the time zone: the list of zones depends on the system's version.
  public init(from reader: inout ArchiveReader) throws {
    let identifier = try String(from: &reader)
    guard let zone = TimeZone(identifier: identifier) else {
      throw ArchiveError(.mismatch, "This device doesn't know the time zone \"\(identifier)\"", offset: reader.offset)
    }
    self = zone
  }
}

/// Encoded as the identifier, such as "de_CH".
extension Locale: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.string) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try identifier.encode(to: &writer) }
  public init(from reader: inout ArchiveReader) throws { self.init(identifier: try String(from: &reader)) }
}

/// Encoded as an array of ascending ranges.
extension IndexSet: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType {
    [Range<Int>].archiveWireType(in: schema)
  }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try Array(rangeView).encode(to: &writer) }

  public init(from reader: inout ArchiveReader) throws {
    let ranges = try [Range<Int>](from: &reader)
    self.init()
    var end = 0
    for range in ranges {
      // Foundation traps on negative indices, and Int.max is its "not found".
      guard range.lowerBound >= end, range.upperBound < Int.max, !range.isEmpty else {
        throw reader.damaged("An index set's ranges aren't in ascending order")
      }
      insert(integersIn: range)
      end = range.upperBound
    }
  }
}
