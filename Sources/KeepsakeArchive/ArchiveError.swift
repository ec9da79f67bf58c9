public import Foundation

/// An error in writing a value to an archive or reading it, with its location.
///
/// `code` is for programs, `message` for people. Missing, damaged and too-new archives have different codes, because a
/// game handles them differently: start afresh, fall back to an older version, or ask the player to update.
public struct ArchiveError: LocalizedError, Sendable, Equatable {
  /// The kind of problem.
  public enum Code: String, Sendable, CaseIterable {
    /// There is nothing to read.
    case missing
    /// The bytes are not an archive at all.
    case notAnArchive
    /// The bytes are an archive that is truncated or altered.
    case damaged
    /// The archive, or a type in it, was written by a newer program.
    case tooNew
    /// The archive has an object of a class that this program doesn't list, and what is read refers to it.
    case unknownClass
    /// An object to be written has a class that isn't listed.
    case unlistedClass
    /// The archive has no value for a required field.
    case missingField
    /// The archive has an enum case that this program doesn't know.
    case unknownCase
    /// The saved value doesn't fit the program's type, or the archive is of another type.
    case mismatch
    /// A limit of `ArchiveLimits` was exceeded.
    case limit
    /// Required references form a cycle, or an unowned object isn't saved.
    case unbuildable
    /// The type can't be archived as it is declared.
    case unsupported
  }

  /// The kind of failure.
  public var code: Code
  /// A sentence that a person can act on.
  public var message: String
  /// The name of the type in which the error occurred, if known.
  public var type: String?
  /// The key of the field, if known.
  public var field: String?
  /// The offset from the start of the archive in bytes, if known.
  public var offset: Int?

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: The kind of failure.
  ///   - message: A sentence that a person can act on.
  ///   - type: The name of the type in which the error occurred, if known.
  ///   - field: The key of the field, if known.
  ///   - offset: The offset from the start of the archive in bytes, if known.
  public init(_ code: Code, _ message: String, type: String? = nil, field: String? = nil, offset: Int? = nil) {
    self.code = code
    self.message = message
    self.type = type
    self.field = field
    self.offset = offset
  }
}

extension ArchiveError: CustomStringConvertible {
  public var description: String { "\(locatedMessage) [\(code.rawValue)]" }

  /// The message with its location, for a person.
  public var errorDescription: String? { locatedMessage }

  private var locatedMessage: String {
    var place = ""
    if let type { place += " in \(type)" }
    if let field { place += type == nil ? " at \(field)" : ".\(field)" }
    if let offset { place += " at byte \(offset)" }
    return "\(message)\(place.isEmpty ? "" : " (" + place.dropFirst() + ")")"
  }
}
