package import Foundation

/// A value in a keyed archive, with Foundation's classes resolved: a text is a text, whether it is a plain string or an
/// NSMutableString object.
package enum KeyedContent {
  case null
  case bool(Bool)
  case integer(Int128)
  case number(Double)
  case string(String)
  case data(Data)
  case date(Date)
  case url(String)
  case uuid(UUID)
  case decimal(String)
  /// From NSArray, NSOrderedSet, and lists that aren't objects.
  case list([PropertyList])
  case set([PropertyList])
  /// From NSDictionary.
  case pairs(keys: [PropertyList], values: [PropertyList])
  /// A point, size, rectangle or insets: numbers by name or in their order.
  case shape([KeyedForms.Part])
  /// From a class for which there is no other case.
  indirect case forms(KeyedForms)
  /// A dictionary that isn't an object.
  case fields([PropertyList.Entry])
  /// From any other class.
  case object(KeyedArchive.ClassName, [PropertyList.Entry])

  /// The content as shown without types; nothing is omitted.
  var shown: KeyedContent { if case .forms(let forms) = self { forms.shown } else { self } }

  /// The number of values in it.
  var count: Int {
    switch self {
    case .list(let elements), .set(let elements): elements.count
    case .pairs(let keys, _): keys.count
    case .fields(let entries), .object(_, let entries): entries.count
    case .forms(let forms): forms.count
    default: 1
    }
  }

  /// A short description, whatever it contains.
  var summary: String {
    switch self {
    case .null: "nil"
    case .bool(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .number(let value): "\(value)"
    case .string(let text): "\"\(text.prefix(40))\(text.count > 40 ? "..." : "")\""
    case .data(let data): "\(data.count) bytes of data"
    case .date(let date): "the date \(XMLDate.text(date) ?? "\(date.timeIntervalSinceReferenceDate)")"
    case .url(let text): "the URL \(text.prefix(80))"
    case .uuid(let uuid): "the UUID \(uuid)"
    case .decimal(let digits): digits
    case .list(let elements): "a list of \(elements.count)"
    case .set(let elements): "a set of \(elements.count)"
    case .pairs(let keys, _): "a dictionary of \(keys.count)"
    case .shape: "a point, size, rectangle or insets"
    case .forms(let forms): forms.summary
    case .fields(let entries): "a dictionary of \(entries.count)"
    case .object(let name, _): "an object of the class \(name.name)"
    }
  }
}

extension KeyedArchive {
  /// Returns the content of a value, resolving references and Foundation's own classes.
  func content(of value: PropertyList) throws -> KeyedContent {
    guard let uid = value.uid else { return try plain(value) }
    let object = try object(uid)
    guard uid != 0, object != .string(Self.null) else { return .null }
    if object.uid != nil {
      throw PropertyListError(.damaged, "Object \(uid) is only a reference: the file was altered")
    }
    return try plain(object)
  }

  /// What an object is shown as.
  package enum Showing {
    /// Its fields, under their names.
    case fields
    /// A list, a set, or a dictionary of what it contains.
    case collection
    /// A text, a number or the like that it represents.
    case value
  }

  /// Returns what an object, which has been looked up, is shown as.
  package func showing(_ object: PropertyList) throws -> Showing {
    guard object.uid == nil else { return .value }
    let content = try plain(object)
    switch content.shown {
    case .object: return .fields
    case .fields:
      // A program's own dictionary, and not one that a class of Foundation's is shown as.
      return object["$class"] == nil ? .fields : .collection
    case .list, .set, .pairs: return .collection
    default: return .value
    }
  }

  private func plain(_ value: PropertyList) throws -> KeyedContent {
    switch value {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .integer(let value): return .integer(value)
    case .number(let value): return .number(value)
    case .float(let value): return .number(Double(value))
    case .string(let value): return .string(value)
    case .data(let value): return .data(value)
    case .date(let value): return .date(value)
    case .uid: return try content(of: value)
    case .array(let elements): return .list(elements)
    case .set(let elements): return .set(elements)
    case .dictionary(let fields):
      guard let name = try className(of: value) else { return .fields(fields) }
      let object = FoundationObject(archive: self, name: name, list: value)
      return try FoundationClass.named(name.name)?.read(object) ?? .object(name, object.entries)
    }
  }
}

/// The contents of an archive's objects, each resolved once, however many references lead to it.
final class KeyedContents {
  private let archive: KeyedArchive
  private var known: [UInt64: KeyedContent] = [:]

  init(_ archive: KeyedArchive) { self.archive = archive }

  func content(of value: PropertyList) throws -> KeyedContent {
    guard let uid = value.uid else { return try archive.content(of: value) }
    if let content = known[uid] { return content }
    let content = try archive.content(of: value)
    known[uid] = content
    return content
  }
}
