import Foundation

/// A value on its way into a keyed archive. A class, because containers are filled after they were put in their place, and because shared objects stay one.
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
  /// Of an object: the class's name and those of the named classes above it.
  var ancestry: [String] = []
  /// Its number in the archive, once it has one.
  var number: UInt64?

  init(_ content: Content? = nil) { self.content = content }

  func add(_ key: String, _ value: KeyedBox) {
    guard case .fields(var fields) = content else { return }
    // Out of its place while it grows, so that it isn't copied.
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
