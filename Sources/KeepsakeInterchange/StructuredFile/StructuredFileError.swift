public import Foundation

/// An error in a structured file, with its path.
public struct StructuredFileError: LocalizedError, Sendable, Hashable, CustomStringConvertible {
  /// The kind of problem, for programs to check.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// The bytes aren't valid JSON, or aren't a property list; or an object in JSON has a name twice.
    case malformed
    /// A value is of another kind than the type requires, or out of range.
    case mismatch
    /// A value that the type requires is missing.
    case missingValue
    /// The value contains something that the format can't represent.
    case unencodable
    /// The file is larger than the maximum.
    case tooLarge
    /// The file's name doesn't indicate a format.
    case unknownFormat
  }

  /// The kind of problem.
  public var code: Code
  /// The path of the value, such as `quests[3].reward`; empty for the whole file.
  public var path: String
  /// What is wrong there, as a sentence that a person can act on.
  public var message: String

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: The kind of problem.
  ///   - path: The path of the value, such as `quests[3].reward`; empty for the whole file.
  ///   - message: What is wrong there, as a sentence that a person can act on.
  public init(_ code: Code, path: String = "", _ message: String) {
    self.code = code
    self.path = path
    self.message = message
  }

  public var description: String { path.isEmpty ? message : "\(path): \(message)" }

  public var errorDescription: String? { description }
}

extension StructuredFileError {
  init(_ error: EncodingError) {
    guard case .invalidValue(let value, let context) = error else {
      self.init(.unencodable, "this can't be written: \(error)")
      return
    }
    self.init(
      .unencodable, path: Self.path(context.codingPath),
      "\(String("\(value)".prefix(80))) can't be written: \(context.debugDescription)")
  }

  /// - Parameter tree: The actual contents; nil if the bytes aren't a file of this format.
  init(_ error: DecodingError, in tree: StructuredTree?) {
    switch error {
    case .typeMismatch(let type, let context):
      let found = tree?.description(at: context.codingPath) ?? "something else"
      self.init(.mismatch, path: Self.path(context.codingPath), "expected \(Self.name(of: type)), found \(found)")
    case .valueNotFound(let type, let context):
      let found = tree?.description(at: context.codingPath) ?? "nothing"
      self.init(.missingValue, path: Self.path(context.codingPath), "expected \(Self.name(of: type)), found \(found)")
    case .keyNotFound(let key, let context):
      let other = tree?.unknownName(like: key, at: context.codingPath).map { ", but there is \($0), which isn't known" }
      self.init(.missingValue, path: Self.path(context.codingPath + [key]), "is missing\(other ?? "")")
    case .dataCorrupted(let context):
      if tree == nil {
        // Only this part of Foundation's error is about the file.
        let detail = (context.underlyingError as NSError?)?.userInfo["NSDebugDescription"] as? String
        let reason = detail.map { " (\($0))" } ?? ""
        self.init(.malformed, "the file is not well formed: \(context.debugDescription)\(reason)")
      } else {
        let found = tree?.description(at: context.codingPath).map { ", found \($0)" } ?? ""
        self.init(.mismatch, path: Self.path(context.codingPath), "\(context.debugDescription)\(found)")
      }
    @unknown default:
      self.init(.mismatch, "\(error)")
    }
  }

  /// - Parameters:
  ///   - type: The type of a number into which the one found doesn't fit.
  ///   - value: What was found.
  init(unfitFor type: any Any.Type, _ value: NSNumber, at path: [any CodingKey]) {
    let expected =
      switch type {
      case let type as any FixedWidthInteger.Type where value.doubleValue.rounded() == value.doubleValue:
        "a whole number from \(type.min) to \(type.max)"
      case is any FixedWidthInteger.Type: "a whole number"
      default: "a number that \(type) can hold"
      }
    self.init(.mismatch, path: Self.path(path), "expected \(expected), found \(value)")
  }

  /// Returns a path as text, such as `quests[3].reward`. A key that isn't a plain word is written in brackets and
  /// quotes.
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
