import Foundation

/// Writes the values of `Codable` types as the objects of an archive.
struct KeyedAssembly {
  private var table = KeyedObjectTable()

  static func list(_ root: KeyedBox, key: String) -> PropertyList {
    var assembly = KeyedAssembly()
    let reference = assembly.reference(root)
    return assembly.table.list(top: [.init(key, reference)])
  }

  /// Recursive for each level, of which the encoder allows some hundred at most.
  private mutating func reference(_ box: KeyedBox) -> PropertyList {
    if let number = box.number { return .uid(number) }
    switch box.content {
    case .null: return .uid(0)
    case .string(let text): return .uid(table.text(text))
    default: break
    }
    // The number is reserved before those of its contents: the root comes first, as in Foundation's archives.
    let number = table.reserve()
    box.number = number
    table.fill(number, object(box))
    return .uid(number)
  }

  private mutating func object(_ box: KeyedBox) -> PropertyList {
    switch box.content {
    case .bool(let value): return .bool(value)
    case .integer(let value): return .integer(value)
    case .number(let value): return .number(value)
    case .float(let value): return .float(value)
    case .string(let value): return .string(value)
    case .data(let value): return foundation(.data(value))
    case .date(let value): return foundation(.date(value))
    case .url(let value): return foundation(.url(value.absoluteString))
    case .uuid(let value): return foundation(.uuid(value))
    case .decimal(let value): return foundation(.decimal("\(value)"))
    case .list(let elements): return foundation(.list(elements.map { reference($0) }))
    case .set(let elements): return foundation(.set(elements.map { reference($0) }))
    case .pairs(let elements):
      let keys = stride(from: 0, to: elements.count - 1, by: 2).map { elements[$0] }
      let values = stride(from: 1, to: elements.count, by: 2).map { elements[$0] }
      return dictionary(keys, values)
    case .fields(let fields):
      guard let name = box.ancestry.first else {
        return dictionary(fields.map { KeyedBox(.string($0.key)) }, fields.map(\.value))
      }
      let entries = fields.map { PropertyList.Entry(KeyedObjectTable.key($0.key), field($0.value)) }
      return table.object(name, Array(box.ancestry.dropFirst()), entries)
    case .null, nil: return .null
    }
  }

  /// Returns a field's value. Numbers and flags are written in the object itself.
  private mutating func field(_ box: KeyedBox) -> PropertyList {
    switch box.content {
    case .bool, .integer, .number, .float: object(box)
    default: reference(box)
    }
  }

  private mutating func dictionary(_ keys: [KeyedBox], _ values: [KeyedBox]) -> PropertyList {
    let keys = keys.map { reference($0) }
    return foundation(.pairs(keys: keys, values: values.map { reference($0) }))
  }

  /// Every content passed here has a class.
  private mutating func foundation(_ content: KeyedContent) -> PropertyList { table.object(for: content) ?? .null }
}
