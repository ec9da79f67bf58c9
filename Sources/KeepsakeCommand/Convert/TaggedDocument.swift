#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInterchange
import KeepsakeReplication

/// A whole file in tagged form: a dictionary that states its kind under `$keepsake`, so that no other file is mistaken
/// for one.
enum TaggedDocument {
  static let key = "$keepsake"

  /// The value of the key.
  enum Kind: String {
    case archive = "archive 1"
    case keyed = "keyed archive 1"
    case values = "values 1"
  }

  /// Returns nil for a file that isn't in tagged form. Throws for one that a newer program wrote.
  static func kind(of list: PropertyList) throws -> Kind? {
    guard case .dictionary(let entries) = list, let name = entries.last(where: { $0.key == key })?.value.string else {
      return nil
    }
    guard let kind = Kind(rawValue: name) else {
      throw CommandFailure(
        .newer, "the kind of this file isn't known: \(name.prefix(80))", next: "use a newer version of keepsake")
    }
    return kind
  }

  // MARK: Values and keyed archives

  static func values(_ graph: ObjectGraph, for target: FileFormat) throws -> PropertyList {
    var tagger = TaggedValues(graph, for: target)
    return [key: .string(Kind.values.rawValue), "value": try tagger.list(graph.root)]
  }

  /// Refuses any other key, so that nothing that somebody added is silently ignored.
  static func refuseOthers(than keys: Set<String>, in list: PropertyList) throws {
    guard case .dictionary(let entries) = list,
      let other = entries.first(where: { $0.key != key && !keys.contains($0.key) })
    else {
      return
    }
    throw CommandFailure(
      .data, "the key \(other.key.prefix(80)) isn't known beside \(key)",
      next: "remove it; values belong below root, top or value")
  }

  static func values(in list: PropertyList) throws -> ObjectGraph {
    try refuseOthers(than: ["value"], in: list)
    guard let value = list["value"] else { throw missing("value") }
    var reader = TaggedReader()
    let graph = ObjectGraph(try reader.value(value))
    try reader.check(references: graph.objects.count)
    return graph
  }

  static func keyed(_ graph: ObjectGraph, for target: FileFormat) throws -> PropertyList {
    var tagger = TaggedValues(graph, for: target)
    let classes = graph.classes.dropFirst(ObjectGraph.plainClasses.count).map { type -> PropertyList in
      ["name": .string(type.name), "classes": .array(type.ancestry.map { .string($0) })]
    }
    // If two classes have the same name but different superclasses, the number identifies the class.
    let names = Dictionary(grouping: graph.classes, by: \.name).mapValues(\.count)
    var objects: [PropertyList] = []
    for (number, object) in graph.objects.enumerated() {
      guard let object else { continue }
      let name = graph.classes[object.type].name
      let type: PropertyList =
        names[name] == 1 && !name.isEmpty
        ? .string(name) : .integer(Int128(object.type - ObjectGraph.plainClasses.count))
      objects.append(
        .dictionary(
          [.init("$id", .integer(Int128(number))), .init("$class", type)] + (try tagger.fields(object.fields))))
    }
    return [
      key: .string(Kind.keyed.rawValue), "classes": .array(classes), "top": .dictionary(try tagger.fields(graph.top)),
      "objects": .array(objects),
    ]
  }

  static func keyed(in list: PropertyList) throws -> ObjectGraph {
    try refuseOthers(than: ["classes", "top", "objects"], in: list)
    guard case .array(let classes) = list["classes"], case .dictionary(let top) = list["top"],
      case .array(let objects) = list["objects"]
    else {
      throw missing("classes, top and objects")
    }
    var graph = ObjectGraph(.none)
    for type in classes {
      guard let name = type["name"]?.string, case .array(let above) = type["classes"] else {
        throw missing("a class's name and classes")
      }
      let ancestry = above.compactMap(\.string)
      guard ancestry.count == above.count else { throw missing("the names of the classes above \(name.prefix(80))") }
      graph.classes.append(.init(name: name, ancestry: ancestry))
    }
    var reader = TaggedReader(classes: numbers(graph.classes))
    var found: [Int: ObjectGraph.Object] = [:]
    for object in objects {
      let (number, type, fields) = try head(
        of: object, &reader, classes: classes.count, offset: ObjectGraph.plainClasses.count)
      guard found.updateValue(.init(type: type, fields: fields), forKey: number) == nil else {
        throw CommandFailure(.data, "two objects have the $id \(number)")
      }
    }
    let last = found.keys.max() ?? -1
    guard last <= 2 * objects.count else {
      throw CommandFailure(
        .data, "an object has the $id \(last), which is too high for \(CountText.of(objects.count, "object"))")
    }
    graph.objects = (0..<last + 1).map { found[$0] }
    graph.top = try reader.fields(top)
    try reader.check(references: graph.objects.count)
    graph.root = ObjectGraph.root(graph.top)
    return graph
  }

  private static func numbers(_ classes: [ObjectGraph.Class]) -> [String: Int] {
    Dictionary(classes.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Returns an object's number, class and fields. A class is given by its name, or by its number if the name is
  /// ambiguous.
  static func head(
    of object: PropertyList, _ reader: inout TaggedReader, classes: Int, offset: Int
  ) throws -> (number: Int, type: Int, fields: [ArchiveValue.Field]) {
    guard case .dictionary(let entries) = object, case .integer(let id) = object["$id"], let number = Int(exactly: id),
      number >= 0
    else {
      throw missing("an object's $id")
    }
    let type: Int?
    switch object["$class"] {
    case .string(let name): type = reader.classes[name]
    case .integer(let index): type = (0..<Int128(classes)).contains(index) ? Int(index) + offset : nil
    default: type = nil
    }
    guard let type else { throw CommandFailure(.data, "the class of object \(number) isn't listed") }
    return (number, type, try reader.fields(entries.filter { $0.key != "$id" && $0.key != "$class" }))
  }

  static func missing(_ what: String) -> CommandFailure {
    CommandFailure(
      .data, "the file is marked with the key \(key), but lacks \(what)", next: "convert the original again")
  }
}
#endif
