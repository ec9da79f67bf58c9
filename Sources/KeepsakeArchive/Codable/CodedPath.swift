/// A path in a coded value: a linked list that shares its beginning with the paths of its siblings.
final class CodedPath {
  let key: any CodingKey
  let outer: CodedPath?

  init(_ key: any CodingKey, in outer: CodedPath?) {
    self.key = key
    self.outer = outer
  }
}

/// A path whose last key isn't allocated yet, because most values never need a path.
struct CodedStep {
  let key: (any CodingKey)?
  let outer: CodedPath?

  static var root: CodedStep { CodedStep(key: nil, outer: nil) }

  var path: CodedPath? { key.map { CodedPath($0, in: outer) } ?? outer }
}

/// The index of an element in a list, as a coding key.
struct CodedIndex: CodingKey {
  let index: Int
  var stringValue: String { "Index \(index)" }
  var intValue: Int? { index }

  init(_ index: Int) { self.index = index }
  init?(stringValue: String) { nil }
  init?(intValue: Int) { index = intValue }
}

/// The default key for a superclass's values.
struct CodedSuper: CodingKey {
  var stringValue: String { "super" }
  var intValue: Int? { nil }

  init() {}
  init?(stringValue: String) { if stringValue != "super" { return nil } }
  init?(intValue: Int) { nil }
}

extension [any CodingKey] {
  init(_ path: CodedPath?) {
    self.init()
    var next = path
    while let here = next {
      append(here.key)
      next = here.outer
    }
    reverse()
  }

  /// The path as text, such as `wind.speeds[3]`; nil for the value itself.
  var codedText: String? {
    var text = ""
    for key in self {
      if key is CodedIndex, let index = key.intValue {
        text += "[\(index)]"
      } else {
        text += (text.isEmpty ? "" : ".") + key.stringValue
      }
    }
    return text.isEmpty ? nil : text
  }
}

extension ArchiveError {
  /// Creates an error for a coded value. An error in the value itself gets its type and field from the field that
  /// contains it.
  init(_ code: Code, _ message: String, coded type: Any.Type, at path: [any CodingKey]) {
    let field = path.codedText
    self.init(code, message, type: field == nil ? nil : "\(type)", field: field)
  }

  /// Converts an error of a `Decodable` type or of a container.
  init(_ error: DecodingError, in type: Any.Type) {
    switch error {
    case .keyNotFound(let key, let context):
      self.init(
        .missingField, "The saved \(type) has no value under the key \"\(key.stringValue)\"", coded: type,
        at: context.codingPath + [key])
    case .valueNotFound(let wanted, let context):
      self.init(
        .missingField, "The saved \(type) has no value where a \(wanted) is needed: \(context.debugDescription)",
        coded: type,
        at: context.codingPath)
    case .typeMismatch(_, let context), .dataCorrupted(let context):
      self.init(
        .mismatch, "The saved value doesn't fit \(type): \(context.debugDescription)", coded: type,
        at: context.codingPath)
    @unknown default:
      self.init(.mismatch, "The saved value doesn't fit \(type): \(error)", coded: type, at: [])
    }
  }

  /// Converts an error of an `Encodable` type or of a container.
  init(_ error: EncodingError, in type: Any.Type) {
    switch error {
    case .invalidValue(_, let context):
      self.init(
        .unsupported, "A value of \(type) can't be encoded: \(context.debugDescription)", coded: type,
        at: context.codingPath)
    @unknown default:
      self.init(.unsupported, "A value of \(type) can't be encoded: \(error)", coded: type, at: [])
    }
  }
}
