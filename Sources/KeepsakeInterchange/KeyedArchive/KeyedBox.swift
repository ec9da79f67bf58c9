import Foundation

/// A value to be written to a keyed archive. A class, because containers are filled after they are added to their
/// parent, and because shared objects must stay shared.
final class KeyedBox {
  enum Content {
    case null
    case bool(Bool)
    case integer(Int128)
    case number(Double)
    case float(Float)
    case string(String)
    case data(Data)
    case date(Date)
    case url(URL)
    case uuid(UUID)
    case decimal(Decimal)
    case list([KeyedBox])
    case set([KeyedBox])
    case pairs([KeyedBox])
    case fields([(key: String, value: KeyedBox)])
  }

  var content: Content?
  /// For an object: the name of its class and those of its named superclasses.
  var ancestry: [String] = []
  /// The object's number in the archive, once it has one.
  var number: UInt64?

  init(_ content: Content? = nil) { self.content = content }

  func add(_ key: String, _ value: KeyedBox) {
    guard case .fields(var fields) = content else { return }
    // Cleared while the array grows, so that the array isn't copied.
    content = nil
    fields.append((key, value))
    content = .fields(fields)
  }

  func add(_ value: KeyedBox) {
    guard case .list(var elements) = content else { return }
    content = nil
    elements.append(value)
    content = .list(elements)
  }

  var count: Int { if case .list(let elements) = content { elements.count } else { 0 } }
}
