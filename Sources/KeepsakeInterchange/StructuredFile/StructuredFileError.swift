import Foundation

/// What is wrong with a structured file, and where in it.
public struct StructuredFileError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What kind of problem it is: what a program branches on.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// The bytes are no JSON, or no property list.
    case malformed
    /// A value is of another kind than the type asks for, or out of its range.
    case mismatch
    /// A value that the type needs isn't there.
    case missingValue
    /// The value has something in it that the format can't say.
    case unencodable
    /// There is more than is read.
    case tooLarge
    /// The file's name doesn't say what it is.
    case unknownFormat
  }

  /// What kind of problem it is.
  public var code: Code
  /// Where it is, as people write it: `quests[3].reward`; empty for the whole file.
  public var path: String
  /// What is wrong there, as a sentence that a person can act on.
  public var message: String

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - code: What kind of problem it is.
  ///   - path: Where it is, as people write it: `quests[3].reward`; empty for the whole file.
  ///   - message: What is wrong there, as a sentence that a person can act on.
  public init(_ code: Code, path: String = "", _ message: String) {
    self.code = code
    self.path = path
    self.message = message
  }

  public var description: String { path.isEmpty ? message : "\(path): \(message)" }
}

extension StructuredFileError {
  init(_ error: EncodingError) {
    guard case .invalidValue(let value, let context) = error else {
      self.init(.unencodable, "this can't be written: \(error)")
      return
    }
    self.init(
      .unencodable, path: Self.path(context.codingPath), "\(String("\(value)".prefix(80))) can't be written: \(context.debugDescription)")
  }

  /// - Parameter tree: What is really there; nil if the bytes are not even a file of this format.
  init(_ error: DecodingError, in tree: StructuredTree?) {
    switch error {
    case .typeMismatch(let type, let context):
      let found = tree?.description(at: context.codingPath) ?? "something else"
      self.init(.mismatch, path: Self.path(context.codingPath), "expected \(Self.name(of: type)), found \(found)")
    case .valueNotFound(let type, let context):
      let found = tree?.description(at: context.codingPath) ?? "nothing"
      self.init(.missingValue, path: Self.path(context.codingPath), "expected \(Self.name(of: type)), found \(found)")
    case .keyNotFound(let key, let context):
      self.init(.missingValue, path: Self.path(context.codingPath + [key]), "is missing")
    case .dataCorrupted(let context):
      if tree == nil {
        let reason = context.underlyingError.map { " (\($0.localizedDescription))" } ?? ""
        self.init(.malformed, "the file is not well formed: \(context.debugDescription)\(reason)")
      } else {
        let found = tree?.description(at: context.codingPath).map { ", found \($0)" } ?? ""
        self.init(.mismatch, path: Self.path(context.codingPath), "\(context.debugDescription)\(found)")
      }
    @unknown default:
      self.init(.mismatch, "\(error)")
    }
  }

  /// `quests[3].reward`; a key that isn't a plain word stands in brackets and quotes.
  static func path(_ keys: [any CodingKey]) -> String {
    keys.reduce(into: "") { path, key in
      if let index = key.intValue {
        path += "[\(index)]"
      } else if key.stringValue.wholeMatch(of: /[A-Za-z_][A-Za-z0-9_]*/) != nil {
        path += (path.isEmpty ? "" : ".") + key.stringValue
      } else {
        path += "[\"\(key.stringValue.prefix(80))\"]"
      }
    }
  }

  private static func name(of type: any Any.Type) -> String {
    switch type {
    case is any BinaryInteger.Type: "a whole number"
    case is any BinaryFloatingPoint.Type, is Decimal.Type: "a number"
    case is String.Type, is any StringProtocol.Type: "text"
    case is Bool.Type: "true or false"
    case is Date.Type: "a date"
    case is Data.Type: "data"
    case is any Collection.Type where "\(type)".hasPrefix("Dictionary"): "a dictionary"
    case is any Collection.Type: "a list"
    default: "\(type)"
    }
  }
}
