/// What an archive may take at most; passing a limit is a typed error, never a crash.
public struct ArchiveLimits: Sendable, Equatable {
  /// Bytes of a whole archive. 256 MiB is the largest saved game that the store takes by default.
  public var archiveBytes = 256 << 20
  /// Nested collections, enums and hand-written values. Each level takes a few stack frames, in a debug build about
  /// 2 KiB, and a secondary thread has 512 KiB on some platforms.
  public var depth = 128
  /// Objects with an identity. Each costs a table entry before its first field is read.
  public var objects = 16 << 20
  /// Bytes of one string or data value.
  public var stringBytes = 64 << 20
  /// Elements of one array, set or dictionary. Each takes at least a byte of the archive.
  public var elements = 256 << 20
  /// Memory that decoding takes, counted before it is taken: elements of collections, text and data, objects by their saved properties,
  /// and what the tree of an inspection takes. What initialisers and hooks take themselves isn't counted, nor is the copy from which a
  /// collection grows. A small archive may stand for much more than its own size: an array of large structs that were
  /// saved without most of their fields. Two gigabytes by default.
  public var memoryBytes = Int(Int32.max)
  /// Values inside one `Codable` value, however deep. Each takes some hundred bytes while it is encoded.
  public var codedValues = 16 << 20
  /// Types described in one archive; real games have some hundreds.
  public var types = 16_384
  /// Fields or cases of one type, and keys of hand-written types.
  public var fields = 16_384

  /// Makes the limits that are used where none are given.
  public init() {}

  /// The limits used where none are given.
  public static let standard = ArchiveLimits()

  /// How deeply a type expression such as `[[Int?]]` may nest; Swift source never comes near.
  package static let typeDepth = 64
  /// Where only the archive's own description is at hand, structs and optionals count as levels, too: an altered
  /// description can make them lead to themselves. Honest types have a few of them for each level that `depth` counts.
  static let describedLevels = 4
  /// Classes above a class. Real games have a handful.
  static let classLevels = 64
  /// Structs take no bytes of their own. Honest archives have far less than one for each byte, even where each number
  /// stands in a struct of its own; a forged description can nest hundreds of them around one byte.
  static let structsPerByte = 8
  /// How many types one within the other are compared with the program's; what lies deeper is read field by field. Real
  /// games have some dozens, an altered archive could have each of its types lead to the next.
  static let comparedLevels = 256
  /// How many pairs of types are compared while one archive is read: a third of a second's work. What is compared beyond that is read field by field.
  static let comparisons = 1 << 20

  /// The most structs that so many bytes may stand for. A single value may be wrapped as deeply as is allowed at all.
  static func structs(in bytes: Int) -> Int { bytes >= .max / (2 * structsPerByte) ? .max : bytes * structsPerByte + wrappers }
  private static let wrappers = 512

  /// How deeply values may nest where only the archive's own description is at hand.
  package var describedDepth: Int { levels(Self.describedLevels) }

  /// So many levels for each that `depth` counts.
  func levels(_ each: Int) -> Int { depth >= .max / each ? .max : max(0, depth) * each }

  /// For how many elements memory is taken at once. More is taken only as bytes turn into elements, so a small
  /// archive can't ask for a large allocation.
  @inlinable static func reserved(_ count: Int, of bytes: Int) -> Int { min(count, max(1, reservedBytes / max(1, bytes))) }
  @usableFromInline static let reservedBytes = 1 << 20
  /// What an array, and a set or dictionary, takes before its first element.
  @usableFromInline static let arrayBytes = 32
  @usableFromInline static let tableBytes = 96
  /// What Foundation keeps for a URL besides its text.
  static let urlBytes = 320
}
