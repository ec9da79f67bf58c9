public import Foundation

/// An error in a property list or a keyed archive, with its location.
///
/// `code` is for programs, `message` for people.
public struct PropertyListError: LocalizedError, Sendable, Equatable {
  /// The kind of problem.
  public enum Code: String, Sendable, CaseIterable {
    /// The bytes aren't a property list, or aren't in a supported format.
    case notAPropertyList
    /// The bytes are a property list that is truncated or altered.
    case damaged
    /// The file is well-formed, but contains something unknown or not allowed, such as a newer format or document type
    /// definitions.
    case unsupported
    /// A list contains itself.
    case cycle
    /// A limit of `PropertyListLimits` was exceeded.
    case limit
    /// The format to be written can't represent the value.
    case unwritable
    /// The property list isn't a keyed archive.
    case notAKeyedArchive
    /// An object's class was not named by the caller, and isn't a supported class of Foundation.
    case unknownClass
    /// The archive has no value under a key that the type requires.
    case missingValue
    /// The saved value doesn't fit the type.
    case mismatch
  }

  /// The kind of failure.
  public var code: Code
  /// A sentence that a person can act on.
  public var message: String
  /// The offset in a binary file in bytes, if known.
  public var offset: Int?
  /// The line of an XML file, from 1, if known.
  public var line: Int?
  /// The path of the value, such as `quests[3].reward`; empty if it isn't known, or for the whole file.
  public var path: String

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: The kind of failure.
  ///   - message: A sentence that a person can act on.
  ///   - offset: The offset in a binary file in bytes, if known.
  ///   - line: The line of an XML file, from 1, if known.
  ///   - path: The path of the value, such as `quests[3].reward`.
  public init(_ code: Code, _ message: String, offset: Int? = nil, line: Int? = nil, path: String = "") {
    self.code = code
    self.message = message
    self.offset = offset
    self.line = line
    self.path = path
  }
}

extension PropertyListError: CustomStringConvertible {
  public var description: String { "\(locatedMessage) [\(code.rawValue)]" }

  /// The message with its location, for a person.
  public var errorDescription: String? { locatedMessage }

  private var locatedMessage: String {
    var places: [String] = []
    if !path.isEmpty { places.append("at \(path)") }
    if let offset { places.append("at byte \(offset)") }
    if let line { places.append("in line \(line)") }
    return "\(message)\(places.isEmpty ? "" : " (\(places.joined(separator: ", ")))")"
  }
}
