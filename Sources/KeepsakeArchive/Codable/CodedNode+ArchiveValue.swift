import Foundation

/// Values that describe themselves: see docs/FORMAT.md, "Coded value".
extension ScriptWriter {
  func coded(_ value: ArchiveValue, _ keys: inout CodedKeys, _ node: Int32, depth: Int = 0) throws -> CodedNode {
    guard depth <= limits.depth else { throw error(.limit, "Codable values are nested more than \(limits.depth) deep") }
    if let leaf = codedLeaf(value) { return .leaf(leaf) }
    switch value {
    case .array(let values), .set(let values), .vector(let values):
      let list = CodedList()
      list.nodes = try values.map { try coded($0, &keys, node, depth: depth + 1) }
      return .list(list)
    default:
      guard let fields = Self.fields(value) else { throw misfit(value, node) }
      let object = CodedFields()
      for field in fields {
        let key = keys.number(field.key)
        object.set(try coded(field.value, &keys, node, depth: depth + 1), key)
      }
      return .object(object)
    }
  }

  private func codedLeaf(_ value: ArchiveValue) -> CodedLeaf? {
    if let (mark, inner, _) = ArchiveScript.unmarked(value) {
      switch (mark, inner) {
      case (.float, .number(let number)): return .float(Float(number))
      case (.float, .integer(let number)): return .float(Float(number))
      case (.decimal, let inner): return Self.decimal(inner).map { .decimal($0) }
      default: return nil
      }
    }
    switch value {
    case .none: return .null
    case .bool(let value): return .bool(value)
    case .integer(let value): return CodedLeaf(value)
    case .unsigned(let value): return CodedLeaf(value)
    case .number(let value): return .double(value)
    case .string(let text): return .string(text)
    case .data(let data): return .data(data)
    case .date(let date): return .date(date)
    case .uuid(let uuid): return .uuid(uuid)
    case .url(let text): return .url(text)
    case .decimal(let digits): return Int128(digits).map { CodedLeaf($0) } ?? UInt128(digits).map { CodedLeaf($0) }
    default: return nil
    }
  }
}
