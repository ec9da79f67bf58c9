#if Cloud
import KeepsakeArchive

/// Replaces UIDs of a property list, which only a keyed archive's own objects have there, by their numbers.
struct NumberedUIDs {
  private let graph: ObjectGraph
  private var path: [String] = []
  private var loss = PlainForm.Loss(what: "UIDs, as numbers", count: 0, path: "")

  /// Returns the values, and what was replaced; nil if there are no UIDs.
  static func replaced(in graph: ObjectGraph) -> (ObjectGraph, PlainForm.Loss?) {
    var uids = NumberedUIDs(graph: graph)
    var result = graph
    result.root = uids.value(graph.root)
    return (result, uids.loss.count > 0 ? uids.loss : nil)
  }

  private init(graph: ObjectGraph) { self.graph = graph }

  /// Recurses once per level; readers allow a few hundred.
  private mutating func value(_ value: ArchiveValue) -> ArchiveValue {
    if let uid = graph.uid(value) {
      if loss.count == 0 { loss.path = PlainForm.place(path) }
      loss.count += 1
      return ObjectGraph.integer(Int128(uid))
    }
    switch value {
    case .array(let values): return .array(elements(values))
    case .vector(let values): return .vector(elements(values))
    case .set(let values): return .set(elements(values))
    case .structure(let type, let inner): return .structure(type: type, fields(inner))
    case .enumeration(let type, let name, let inner):
      return .enumeration(type: type, case: name, fields(inner))
    case .dictionary(let pairs):
      return .dictionary(
        pairs.enumerated().map { index, pair in
          .init(key: below("[\(index)]", pair.key), value: below("[\(index)]", pair.value))
        })
    default: return value
    }
  }

  private mutating func fields(_ fields: [ArchiveValue.Field]) -> [ArchiveValue.Field] {
    fields.map { field in .init(key: field.key, value: below(".\(field.key.prefix(80))", field.value)) }
  }

  private mutating func elements(_ values: [ArchiveValue]) -> [ArchiveValue] {
    values.enumerated().map { index, element in below("[\(index)]", element) }
  }

  private mutating func below(_ step: String, _ inner: ArchiveValue) -> ArchiveValue {
    path.append(step)
    defer { path.removeLast() }
    return value(inner)
  }
}
#endif
