/// What went wrong while a value was written to or read from an archive, and where.
///
/// `code` is for programs, `message` for people. Missing, damaged and too-new are different codes, because a game
/// answers them differently: start afresh, fall back to an older version, or ask the player to update.
public struct ArchiveError: Error, Sendable, Equatable {
  /// The kind of problem.
  public enum Code: String, Sendable, CaseIterable {
    /// There is nothing to read.
    case missing
    /// The bytes are not an archive at all.
    case notAnArchive
    /// The bytes are an archive that is cut off or altered.
    case damaged
    /// The archive, or a type in it, was written by a newer program.
    case tooNew
    /// The archive has an object of a class that this program doesn't list.
    case unknownClass
    /// An object of a class that isn't listed was to be written.
    case unlistedClass
    /// The archive has no value for a field that needs one.
    case missingField
    /// The archive has an enum case that this program doesn't know.
    case unknownCase
    /// The saved value doesn't fit the program's type.
    case mismatch
    /// A limit of `ArchiveLimits` was passed.
    case limit
    /// Required references form a cycle, or an unowned object isn't saved.
    case unbuildable
    /// The type can't be archived as it is declared.
    case unsupported
  }

  /// What kind of failure it is.
  public var code: Code
  /// A sentence that a person can act on.
  public var message: String
  /// The name of the type in which it happened, where known.
  public var type: String?
  /// The key of the field, where known.
  public var field: String?
  /// The distance from the start of the archive in bytes, where known.
  public var offset: Int?

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - code: What kind of failure it is.
  ///   - message: A sentence that a person can act on.
  ///   - type: The name of the type in which it happened, where known.
  ///   - field: The key of the field, where known.
  ///   - offset: The distance from the start of the archive in bytes, where known.
  public init(_ code: Code, _ message: String, type: String? = nil, field: String? = nil, offset: Int? = nil) {
    self.code = code
    self.message = message
    self.type = type
    self.field = field
    self.offset = offset
  }
}

extension ArchiveError: CustomStringConvertible {
  public var description: String {
    var place = ""
    if let type { place += " in \(type)" }
    if let field { place += type == nil ? " at \(field)" : ".\(field)" }
    if let offset { place += " at byte \(offset)" }
    return "\(message)\(place.isEmpty ? "" : " (" + place.dropFirst() + ")") [\(code.rawValue)]"
  }
}
