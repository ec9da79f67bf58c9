/// The saved fields of a value whose type had an older version when it was saved. Passed to `Archivable.migrate(_:)`.
///
/// Returns every saved field by its key, even if the field was renamed or removed or has another type today.
public struct ArchiveMigration: ~Copyable {
  /// The version that the type had when the value was saved. In a class, the version of the class that declares the
  /// hook.
  public private(set) var version: Int
  /// For an enum, the key of the saved case, even if the program no longer knows that case.
  public let caseKey: String?
  private var reader: ArchiveReader
  private let levels: [FieldPlan.Level]
  private var level = -1
  private var read: Set<String> = []

  init(_ reader: consuming ArchiveReader, _ plan: FieldPlan, caseKey: String? = nil, entries: [KeyedFields.Entry]) {
    self.reader = reader
    self.reader.keyed = KeyedFields(entries: entries, version: plan.savedVersion)
    self.caseKey = caseKey
    version = plan.savedVersion
    levels = plan.levels
  }

  /// The keys that the value was saved with, in the order in which they were written. For an object, the keys of all
  /// its classes; for an enum, those of the saved case's payload: labels, or positions counted from "0".
  public var keys: [String] { reader.keys }

  /// The context that the caller passed to `decode`.
  public var context: Any? { reader.context }

  /// Reads the value saved under a key, as any type that fits it.
  ///
  /// - Parameters:
  ///   - type: The type to read the value as: its saved type or one that fits, such as a wider integer type, or
  ///     `Double` for an integer.
  ///   - key: The key under which the value was saved.
  /// - Returns: The value.
  /// - Throws: `ArchiveError` with `missingField` if there is none, or only an empty optional and `type` isn't
  ///   optional; `mismatch` if it doesn't fit `type`; and what else reading it throws.
  public mutating func decode<T: Archivable>(_ type: T.Type, forKey key: String) throws -> T {
    read.insert(key)
    return try reader.decode(type, forKey: key)
  }

  /// Reads the value saved under a key, or returns a default if there is none, or only an empty optional.
  ///
  /// - Parameters:
  ///   - type: As for `decode(_:forKey:)`.
  ///   - key: The key under which the value was saved.
  ///   - value: The default. Evaluated only if it is needed.
  /// - Returns: The value, or the default.
  /// - Throws: As `decode(_:forKey:)` if there is a value; what the default throws if there is none.
  public mutating func decode<T: Archivable>(
    _ type: T.Type, forKey key: String, default value: @autoclosure () throws -> T
  ) throws -> T {
    try decodeIfPresent(type, forKey: key) ?? value()
  }

  /// Reads the value saved under a key, or returns nil if there is none, or only an empty optional.
  ///
  /// - Parameters:
  ///   - type: As for `decode(_:forKey:)`.
  ///   - key: The key under which the value was saved.
  /// - Returns: The value; nil if there is none, or only an empty optional.
  /// - Throws: As `decode(_:forKey:)` if there is a value.
  public mutating func decodeIfPresent<T: Archivable>(_ type: T.Type, forKey key: String) throws -> T? {
    read.insert(key)
    return try reader.decodeIfPresent(type, forKey: key)
  }

  /// Advances to the next class of the object, from the topmost one down. For generated code.
  ///
  /// - Returns: Whether an older version of the class was saved, so that its hook has to be called; false behind the
  ///   last class.
  public mutating func enterNextClass() -> Bool {
    level += 1
    guard level < levels.count else { return false }
    version = levels[level].savedVersion ?? 0
    return levels[level].isOlder
  }

  /// Throws unless the hook has read every saved value that couldn't be read into its field, so that no data is lost
  /// unnoticed.
  mutating func checkRetyped(_ plan: FieldPlan) throws {
    guard let key = plan.retyped.first(where: { !read.contains($0) }), let place = plan.keys.firstIndex(of: key) else {
      return
    }
    throw reader.retypedError(plan, place)
  }
}
