/// What is wrong with a property list or a keyed archive, and where.
///
/// `code` is for programs, `message` for people.
public struct PropertyListError: Error, Sendable, Equatable {
  /// The kind of problem.
  public enum Code: String, Sendable, CaseIterable {
    /// The bytes are none, or not of a kind that is read.
    case notAPropertyList
    /// The bytes are a property list that is cut off or altered.
    case damaged
    /// Well formed, but something in it isn't known or isn't allowed: a newer kind of file, a document type of its own.
    case unsupported
    /// A list leads to itself.
    case cycle
    /// A limit of `PropertyListLimits` was passed.
    case limit
    /// The format to write has no such value.
    case unwritable
    /// The property list is no keyed archive.
    case notAKeyedArchive
    /// An object's class was not named, and is no collection or value of Foundation's that is known.
    case unknownClass
    /// The archive has no value under a key that the type needs.
    case missingValue
    /// What was saved doesn't fit the type.
    case mismatch
  }

  /// What kind of failure it is.
  public var code: Code
  /// A sentence that a person can act on.
  public var message: String
  /// The distance from the start of a binary file in bytes, where known.
  public var offset: Int?
  /// The line of an XML file, from 1, where known.
  public var line: Int?
  /// Where the value stands, as people write it: `quests[3].reward`; empty where that isn't known, or for the whole file.
  public var path: String

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - code: What kind of failure it is.
  ///   - message: A sentence that a person can act on.
  ///   - offset: The distance from the start of a binary file in bytes, where known.
  ///   - line: The line of an XML file, from 1, where known.
  ///   - path: Where the value stands, as people write it: `quests[3].reward`.
  public init(_ code: Code, _ message: String, offset: Int? = nil, line: Int? = nil, path: String = "") {
    self.code = code
    self.message = message
    self.offset = offset
    self.line = line
    self.path = path
  }
}

extension PropertyListError: CustomStringConvertible {
  public var description: String {
    var places: [String] = []
    if !path.isEmpty { places.append("at \(path)") }
    if let offset { places.append("at byte \(offset)") }
    if let line { places.append("in line \(line)") }
    return "\(message)\(places.isEmpty ? "" : " (\(places.joined(separator: ", ")))") [\(code.rawValue)]"
  }
}
