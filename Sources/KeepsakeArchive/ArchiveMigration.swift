/// What was saved of a value whose type had an older version then: handed to `Archivable.migrate(_:)`.
///
/// Gives every saved field by its key, whatever became of it: renamed, removed, of another type.
public struct ArchiveMigration: ~Copyable {
  /// The version that the type had when the value was saved. In a class, that of the class whose hook it is.
  public private(set) var version: Int
  /// Of an enum, the key of the saved case, also if the program doesn't know it any more.
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

  /// The keys that the value was saved with, in the order in which they were written. Of an object, those of all its classes;
  /// of an enum, those of the saved case's payload: labels, or places counted from "0".
  public var keys: [String] { reader.keys }

  /// What the caller handed to `decode`.
  public var context: Any? { reader.context }

  /// Reads what was saved under a key, as any type that fits it. Throws `missingField` where there is none.
  public mutating func decode<T: Archivable>(_ type: T.Type, forKey key: String) throws -> T {
    read.insert(key)
    return try reader.decode(type, forKey: key)
  }

  /// Reads what was saved under a key, or gives a default where there is none, or only an empty optional.
  public mutating func decode<T: Archivable>(
    _ type: T.Type, forKey key: String, default value: @autoclosure () throws -> T
  ) throws -> T {
    try decodeIfPresent(type, forKey: key) ?? value()
  }

  /// Reads what was saved under a key; nil where there is none, or only an empty optional.
  public mutating func decodeIfPresent<T: Archivable>(_ type: T.Type, forKey key: String) throws -> T? {
    read.insert(key)
    return try reader.decodeIfPresent(type, forKey: key)
  }

  /// For generated code: goes on to the next class of the object, from the topmost one down, and says whether its hook is to be
  /// called.
  public mutating func enterNextClass() -> Bool {
    level += 1
    guard level < levels.count else { return false }
    version = levels[level].savedVersion ?? 0
    return levels[level].isOlder
  }

  /// What couldn't be read into its field must have been read by the hook: nothing that was saved gets lost unnoticed.
  mutating func checkRetyped(_ plan: FieldPlan) throws {
    guard let key = plan.retyped.first(where: { !read.contains($0) }), let place = plan.keys.firstIndex(of: key) else { return }
    throw reader.retypedError(plan, place)
  }
}
