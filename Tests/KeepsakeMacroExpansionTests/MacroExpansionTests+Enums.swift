import Testing

extension MacroExpansionTests {
  @Test func aFallbackIsListedAndReceivesTheKeyOfTheUnknownCase() throws {
    try expect(
      """
      @available(macOS 99, *)
      @Archivable public enum Pet {
        case cat(`in`: Int)
        @Fallback case other(name: String)
      }
      """,
      expandsTo: """
        @available(macOS 99, *)
        public enum Pet {
          case cat(`in`: Int)
          case other(name: String)

          public static func archiveFields(_ fields: KeepsakeArchive.ArchiveFieldList) {
            fields.describe(Self.self)
            fields.enumCase("cat")
            fields.payload("in", (Int).self)
            fields.enumCase("other")
            fields.payload("name", (String).self)
            fields.fallbackCase()
          }
        }

        @available(macOS 99, *)
        extension Pet: KeepsakeArchive.Archivable {
          public static var archiveName: String {
            "Pet"
          }
          public static var archiveIsKeyed: Bool {
            false
          }
          public func encode(to writer: inout KeepsakeArchive.ArchiveWriter) throws {
            switch self {
            case .cat(let value0):
              try writer.writeCase(0)
              try writer.writePayload(value0)
            case .other(let value0):
              try writer.writeCase(1)
              try writer.writePayload(value0)
            }
            writer.endCase()
          }
          public init(from reader: inout KeepsakeArchive.ArchiveReader) throws {
            var fields = try reader.enterCase(Self.self)
            switch fields.caseIndex {
            case 0:
              self = .cat(in: try reader.field(0, &fields))
            case 1:
              self = .other(name: try reader.caseKey(0, &fields))
            default:
              throw reader.invalidCase()
            }
            try reader.leaveCase(&fields)
            if fields.isOlder {
              try reader.migrate(&self, fields)
            }
          }
        }
        """)
  }

  @Test func aCaseIsListedWithItsKeyAndItsValueFromWhichARawValueIsTaken() throws {
    try expect(
      """
      @Archivable enum Rank: Int {
        case low = 1
        @Key("mid") case middle
      }
      """,
      expandsTo: """
        enum Rank: Int {
          case low = 1
          case middle

          static func archiveFields(_ fields: KeepsakeArchive.ArchiveFieldList) {
            fields.describe(Self.self)
            fields.enumCase("low", Self.low)
            fields.enumCase("mid", Self.middle)
          }
        }

        extension Rank: KeepsakeArchive.Archivable {
          static var archiveName: String {
            "Rank"
          }
          static var archiveIsKeyed: Bool {
            false
          }
          func encode(to writer: inout KeepsakeArchive.ArchiveWriter) throws {
            switch self {
            case .low:
              try writer.writeCase(0)
            case .middle:
              try writer.writeCase(1)
            }
            writer.endCase()
          }
          init(from reader: inout KeepsakeArchive.ArchiveReader) throws {
            var fields = try reader.enterCase(Self.self)
            switch fields.caseIndex {
            case 0:
              self = .low
            case 1:
              self = .middle
            default:
              throw reader.invalidCase()
            }
            try reader.leaveCase(&fields)
            if fields.isOlder {
              try reader.migrate(&self, fields)
            }
          }
        }
        """)
  }
}
