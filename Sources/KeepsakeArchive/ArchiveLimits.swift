/// The maximum sizes of an archive. Exceeding a limit is a typed error, never a crash.
public struct ArchiveLimits: Sendable, Equatable {
  /// Bytes of a whole archive. By default 256 MiB, the largest saved game that the store accepts by default.
  public var archiveBytes = 256 << 20
  /// Nesting depth of collections, enums and hand-written values. Each level takes a few stack frames, about 2 KiB in a
  /// debug build, and a secondary thread has 512 KiB on some platforms.
  public var depth = 128
  /// Number of objects with an identity. Each costs a table entry before its first field is read.
  public var objects = 16 << 20
  /// Bytes of a single string or data value.
  public var stringBytes = 64 << 20
  /// Elements of a single array, set or dictionary. Each takes at least one byte of the archive.
  public var elements = 256 << 20
  /// Bytes of memory that decoding may allocate, counted before each allocation: elements of collections, text and
  /// data, objects by their saved properties, and the tree of an inspection. Not counted are allocations of
  /// initialisers and hooks, and the old copy of a collection while it grows. A small archive may expand to much more
  /// than its own size, for example an array of large structs that were saved without most of their fields. 2 GiB less
  /// one byte by default.
  public var memoryBytes = Int(Int32.max)
  /// Values inside one `Codable` value, at any depth. Each takes some hundred bytes while it is encoded.
  public var codedValues = 16 << 20
  /// Types described in one archive. Real games have some hundreds.
  public var types = 16_384
  /// Fields or cases of one type, and also the keys of hand-written types.
  public var fields = 16_384

  /// Creates the default limits.
  public init() {}

  /// The default limits.
  public static let standard = ArchiveLimits()

  /// Maximum nesting of a type expression such as `[[Int?]]`. Swift source never comes near it.
  package static let typeDepth = 64
  /// Levels of nesting allowed for each level of `depth` where only the archive's own description is available. There,
  /// structs and optionals count as levels, too, because an altered description can make them contain themselves. Valid
  /// types have a few of them for each level that `depth` counts.
  static let describedLevels = 4
  /// Number of superclasses of a class. Real games have a handful.
  static let classLevels = 64
  /// Structs take no bytes of their own. Valid archives have far fewer than one per byte, even if each number is
  /// wrapped in a struct of its own; a forged description can nest hundreds of them around one byte.
  static let structsPerByte = 8
  /// How many nested types are compared with the program's; deeper ones are read field by field. Real games have some
  /// dozens, but in an altered archive each type could contain the next.
  static let comparedLevels = 256
  /// How many pairs of types are compared while one archive is read: about a third of a second's work. Types beyond
  /// that are read field by field.
  static let comparisons = 1 << 20

  /// The maximum number of structs for a number of bytes. A single value may be wrapped up to the maximum depth.
  static func structs(in bytes: Int) -> Int {
    bytes >= .max / (2 * structsPerByte) ? .max : bytes * structsPerByte + wrappers
  }
  private static let wrappers = 512

  /// How deeply values may nest where only the archive's own description is available.
  package var describedDepth: Int { levels(Self.describedLevels) }

  /// The number of levels, with `each` levels for each one that `depth` counts.
  func levels(_ each: Int) -> Int { depth >= .max / each ? .max : max(0, depth) * each }

  /// The number of elements for which memory is reserved in advance. More is allocated only as elements are actually
  /// read, so a small archive can't request a large allocation.
  @inlinable static func reserved(_ count: Int, of bytes: Int) -> Int {
    min(count, max(1, reservedBytes / max(1, bytes)))
  }
  @usableFromInline static let reservedBytes = 1 << 20
  /// Memory that an array, and a set or dictionary, takes before its first element.
  @usableFromInline static let arrayBytes = 32
  @usableFromInline static let tableBytes = 96
  /// Memory that Foundation keeps for a URL besides its text.
  static let urlBytes = 320
}
