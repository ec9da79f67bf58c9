import Foundation

/// Writes coded values from values without their Swift types, the inverse of `CodedTree.archiveValue`. Described in
/// docs/FORMAT.md, "Coded value".
package struct CodedValueWriter {
  private let limits: ArchiveLimits
  /// Creates the error for a value that can't be the encoding of a `Codable` value.
  private let misfit: (ArchiveValue) -> ArchiveError
  private var keys = CodedKeys()

  /// Returns the bytes that `Archive.encode` would have written for the value.
  ///
  /// - Throws: The error from `misfit`; `ArchiveError` with `limit` for values that are nested too deeply.
  package static func bytes(
    of value: ArchiveValue, limits: ArchiveLimits, misfit: (ArchiveValue) -> ArchiveError
  ) throws -> [UInt8] {
    try withoutActuallyEscaping(misfit) { misfit in
      var writer = CodedValueWriter(limits: limits, misfit: misfit)
      let node = try writer.node(of: value, depth: 0)
      return try CodedTreeWriter.bytes(of: node, keys: writer.keys)
    }
  }

  private init(limits: ArchiveLimits, misfit: @escaping (ArchiveValue) -> ArchiveError) {
    (self.limits, self.misfit) = (limits, misfit)
  }

  private mutating func node(of value: ArchiveValue, depth: Int) throws -> CodedNode {
    guard depth <= limits.depth else {
      throw ArchiveError(.limit, "Codable values are nested more than \(limits.depth) deep")
    }
    if let leaf = leaf(of: value) { return .leaf(leaf) }
    switch value {
    case .array(let values), .set(let values), .vector(let values):
      let list = CodedList()
      for value in values { list.nodes.append(try node(of: value, depth: depth + 1)) }
      return .list(list)
    default:
      guard let fields = value.namedFields else { throw misfit(value) }
      let object = CodedFields()
      for field in fields {
        let key = keys.number(field.key)
        object.set(try node(of: field.value, depth: depth + 1), key)
      }
      return .object(object)
    }
  }

  private func leaf(of value: ArchiveValue) -> CodedLeaf? {
    if let (mark, inner, _) = ArchiveMark.unmarked(value) {
      switch (mark, inner) {
      case (.float, .number(let number)): return .float(Float(number))
      case (.float, .integer(let number)): return .float(Float(number))
      case (.decimal, let inner): return inner.decimal.map { .decimal($0) }
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
