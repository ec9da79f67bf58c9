#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInterchange

/// Property lists and keyed archives that stand as data inside of another one, as many a game put its saves into its settings: shown as what they
/// hold, with their objects behind those of the file.
struct NestedFiles {
  private var graph: ObjectGraph
  /// Bytes of data that are still looked into: a file may name the same data any number of times.
  private var bytesLeft: Int

  /// Files in files in files: nobody needs more, and each is read anew.
  private static let maximumDepth = 4
  /// The shortest property list there is.
  private static let leastBytes = 40

  /// The graph with what is in its data. Data that is no such file, or a damaged one, stays what it is.
  ///
  /// - Parameter byteCount: Of the file; its data are no longer, unless they are named several times.
  static func opened(_ graph: ObjectGraph, byteCount: Int) -> ObjectGraph {
    var files = NestedFiles(graph: graph, bytesLeft: maximumDepth * byteCount)
    files.graph.root = files.opened(graph.root, 0)
    for (number, object) in graph.objects.enumerated() {
      guard let object else { continue }
      files.graph.objects[number] = .init(type: object.type, fields: files.fields(object.fields, 0))
    }
    return files.graph
  }

  /// Calls itself for each level, of which readers allow some hundred.
  private mutating func opened(_ value: ArchiveValue, _ depth: Int) -> ArchiveValue {
    switch value {
    case .data(let data): return file(data, depth) ?? value
    case .array(let values): return .array(values.map { opened($0, depth) })
    case .set(let values): return .set(values.map { opened($0, depth) })
    case .dictionary(let pairs): return .dictionary(pairs.map { .init(key: $0.key, value: opened($0.value, depth)) })
    case .structure(let type, let fields): return .structure(type: type, self.fields(fields, depth))
    default: return value
    }
  }

  private mutating func fields(_ fields: [ArchiveValue.Field], _ depth: Int) -> [ArchiveValue.Field] {
    fields.map { .init(key: $0.key, value: opened($0.value, depth)) }
  }

  private mutating func file(_ data: Data, _ depth: Int) -> ArchiveValue? {
    guard depth < Self.maximumDepth, data.count >= Self.leastBytes, data.count <= bytesLeft, SavedFile.isPropertyList(data) else {
      return nil
    }
    bytesLeft -= data.count
    let limits = PropertyListLimits.inProportion(to: data)
    let inner: ObjectGraph
    do {
      let list = try PropertyList(data, limits: limits)
      if list["$archiver"] != nil {
        inner = ObjectGraph(try KeyedArchive(list).tree(limits: limits))
      } else {
        inner = ObjectGraph(list)
      }
    } catch {
      return nil  // It only looks like one.
    }
    let own = ObjectGraph.plainClasses.count
    let (types, numbers) = (graph.classes.count - own, graph.objects.count)
    graph.classes += inner.classes.dropFirst(own)
    graph.objects += inner.objects
    for (number, object) in inner.objects.enumerated() {
      guard let object else { continue }
      let moved = object.fields.map { ArchiveValue.Field(key: $0.key, value: Self.moved($0.value, types, numbers)) }
      graph.objects[numbers + number] = .init(type: object.type + types, fields: fields(moved, depth + 1))
    }
    return opened(Self.moved(inner.root, types, numbers), depth + 1)
  }

  private static func moved(_ value: ArchiveValue, _ types: Int, _ numbers: Int) -> ArchiveValue {
    func type(_ type: Int) -> Int { type < ObjectGraph.plainClasses.count ? type : type + types }
    switch value {
    case .reference(let number): return .reference(number + numbers)
    case .array(let values): return .array(values.map { moved($0, types, numbers) })
    case .set(let values): return .set(values.map { moved($0, types, numbers) })
    case .dictionary(let pairs):
      return .dictionary(pairs.map { .init(key: moved($0.key, types, numbers), value: moved($0.value, types, numbers)) })
    case .structure(let of, let fields):
      return .structure(type: type(of), fields.map { .init(key: $0.key, value: moved($0.value, types, numbers)) })
    default: return value
    }
  }
}
#endif
