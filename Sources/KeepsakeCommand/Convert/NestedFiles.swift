#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInterchange

/// Opens property lists and keyed archives that are stored as data inside another one, as many games put their saves
/// into their settings: shown as what they contain, with their objects after those of the file.
struct NestedFiles {
  private var graph: ObjectGraph
  /// The number of bytes of data that may still be opened: a file may refer to the same data any number of times.
  private var bytesLeft: Int

  /// Files in files in files: nobody needs more levels, and each level is parsed again.
  private static let maximumDepth = 4
  /// The size of the shortest property list.
  private static let leastBytes = 40

  /// Returns the graph with the files in its data opened. Data that isn't such a file, or is a damaged one, stays data.
  ///
  /// - Parameter byteCount: The size of the file. Its data isn't larger, unless the same data is referred to several
  ///   times.
  static func opened(_ graph: ObjectGraph, byteCount: Int) -> ObjectGraph {
    var files = NestedFiles(graph: graph, bytesLeft: maximumDepth * byteCount)
    files.graph.root = files.opened(graph.root, 0)
    for (number, object) in graph.objects.enumerated() {
      guard let object else { continue }
      files.graph.objects[number] = .init(type: object.type, fields: files.fields(object.fields, 0))
    }
    return files.graph
  }

  /// Recurses once per level; readers allow a few hundred.
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
    guard depth < Self.maximumDepth, data.count >= Self.leastBytes, data.count <= bytesLeft,
      SavedFile.isPropertyList(data)
    else {
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
      return .dictionary(
        pairs.map { .init(key: moved($0.key, types, numbers), value: moved($0.value, types, numbers)) })
    case .structure(let of, let fields):
      return .structure(type: type(of), fields.map { .init(key: $0.key, value: moved($0.value, types, numbers)) })
    default: return value
    }
  }
}
#endif
