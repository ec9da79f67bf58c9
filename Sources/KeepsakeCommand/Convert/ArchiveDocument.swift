#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeInterchange

/// An archive in tagged form: its types, its root and its objects, from which the same bytes can be produced again.
enum ArchiveDocument {
  static func list(_ script: ArchiveScript, for target: FileFormat) throws -> PropertyList {
    var graph = ObjectGraph(.none)
    // Types are in the list of types, not at the values.
    graph.uidType = nil
    var tagger = TaggedValues(graph, for: target)
    let names = Dictionary(grouping: script.types, by: \.name).mapValues(\.count)
    let objects = try script.objects.map { object -> PropertyList in
      let name = script.types[object.type].name
      let type: PropertyList = names[name] == 1 ? .string(name) : .integer(Int128(object.type))
      return .dictionary(
        [.init("$id", .integer(Int128(object.number))), .init("$class", type)] + (try tagger.fields(object.fields)))
    }
    return .dictionary([
      .init(TaggedDocument.key, .string(TaggedDocument.Kind.archive.rawValue)),
      .init("types", .array(script.types.map(type))),
      .init("fixedTypes", .integer(Int128(script.fixedTypes))), .init("rootType", expression(script.rootType)),
      .init("keys", .array(script.keys.map { .string($0) })),
      .init("keyedTypes", .array(script.keyedTypes.map(expression))),
      .init("objectCount", .integer(Int128(script.objectCount))), .init("root", try tagger.list(script.root)),
      .init("objects", .array(objects)),
    ])
  }

  static func script(in list: PropertyList) throws -> ArchiveScript {
    guard let types = list["types"]?.array, let fixed = list["fixedTypes"]?.integer, let rootType = list["rootType"],
      let keys = list["keys"]?.array, let keyedTypes = list["keyedTypes"]?.array,
      let count = list["objectCount"]?.integer,
      let root = list["root"], let objects = list["objects"]?.array
    else { throw TaggedDocument.missing("its types, root or objects") }
    try TaggedDocument.refuseOthers(
      than: ["types", "fixedTypes", "rootType", "keys", "keyedTypes", "objectCount", "root", "objects"], in: list)
    var script = ArchiveScript()
    script.types = try types.map(type)
    script.fixedTypes = fixed
    script.rootType = try expression(rootType)
    script.keys = try keys.map { try text($0) }
    script.keyedTypes = try keyedTypes.map { try expression($0) }
    script.objectCount = count
    let numbers = Dictionary(script.types.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
    var reader = TaggedReader(classes: numbers)
    script.objects = try objects.map { object in
      let (number, type, fields) = try TaggedDocument.head(of: object, &reader, classes: types.count, offset: 0)
      return .init(number: number, type: type, fields: fields)
    }
    reader.classes = [:]
    script.root = try reader.value(root)
    return script
  }

  // MARK: Types

  private static func type(_ type: ArchiveScript.TypeDefinition) -> PropertyList {
    var entries: [PropertyList.Entry] = [
      .init("name", .string(type.name)), .init("kind", .string(type.kind.rawValue)),
      .init("version", .integer(Int128(type.version))),
    ]
    if !type.superclasses.isEmpty {
      let above = type.superclasses.map { level -> PropertyList in
        ["name": .string(level.name), "version": .integer(Int128(level.version))]
      }
      entries.append(.init("superclasses", .array(above)))
    }
    if !type.fields.isEmpty { entries.append(.init("fields", fields(type.fields))) }
    if !type.cases.isEmpty {
      entries.append(.init("cases", .array(type.cases.map { ["name": .string($0.key), "fields": fields($0.fields)] })))
    }
    return .dictionary(entries)
  }

  private static func type(_ list: PropertyList) throws -> ArchiveScript.TypeDefinition {
    guard let kind = list["kind"]?.string.flatMap({ ArchiveInspection.Kind(rawValue: $0) }),
      let version = list["version"]?.integer
    else {
      throw TaggedDocument.missing("the kind or version of a type")
    }
    var type = ArchiveScript.TypeDefinition(kind: kind, name: try text(list["name"]), version: version)
    type.superclasses = try (list["superclasses"]?.array ?? []).map { level in
      guard let version = level["version"]?.integer else { throw TaggedDocument.missing("the version of a class") }
      return .init(name: try text(level["name"]), version: version)
    }
    type.fields = try fields(list["fields"])
    type.cases = try (list["cases"]?.array ?? []).map {
      .init(key: try text($0["name"]), fields: try fields($0["fields"]))
    }
    return type
  }

  private static func fields(_ fields: [ArchiveScript.Field]) -> PropertyList {
    .array(
      fields.map { field in
        var entries: [PropertyList.Entry] = [.init("key", .string(field.key)), .init("type", expression(field.type))]
        if field.isDeferred { entries.append(.init("deferred", true)) }
        return .dictionary(entries)
      })
  }

  private static func fields(_ list: PropertyList?) throws -> [ArchiveScript.Field] {
    try (list?.array ?? []).map { field in
      guard let type = field["type"] else { throw TaggedDocument.missing("the type of a field") }
      return .init(
        key: try text(field["key"]), type: try expression(type), isDeferred: field["deferred"]?.bool ?? false)
    }
  }

  private static func text(_ list: PropertyList?) throws -> String {
    guard let text = list?.string else { throw TaggedDocument.missing("a name") }
    return text
  }

  /// `"int32"`, `{"optional": "string"}`, `{"dictionary": ["string", {"type": 3}]}`. Recurses once per level; the
  /// format allows 64.
  private static func expression(_ expression: ArchiveScript.Expression) -> PropertyList {
    switch expression {
    case .scalar(let name): .string(name)
    case .optional(let inner): ["optional": self.expression(inner)]
    case .array(let inner): ["array": self.expression(inner)]
    case .set(let inner): ["set": self.expression(inner)]
    case .dictionary(let key, let value): ["dictionary": [self.expression(key), self.expression(value)]]
    case .vector(let name, let count): ["vector": [.string(name), .integer(Int128(count))]]
    case .named(let index): ["type": .integer(Int128(index))]
    case .later(let code): ["later": .integer(Int128(code))]
    }
  }

  private static func expression(_ list: PropertyList) throws -> ArchiveScript.Expression {
    if let name = list.string { return .scalar(name) }
    guard case .dictionary(let entries) = list, let entry = entries.first, entries.count == 1 else {
      throw TaggedDocument.missing("a type")
    }
    switch (entry.key, entry.value) {
    case ("optional", let inner): return .optional(try expression(inner))
    case ("array", let inner): return .array(try expression(inner))
    case ("set", let inner): return .set(try expression(inner))
    case ("dictionary", .array(let both)) where both.count == 2:
      return .dictionary(try expression(both[0]), try expression(both[1]))
    case ("vector", .array(let both)) where both.count == 2:
      guard let name = both[0].string, let count = both[1].integer else { break }
      return .vector(name, count)
    case ("type", let index):
      if let index = index.integer { return .named(index) }
    case ("later", let code):
      if let code = code.integer { return .later(code) }
    default: break
    }
    throw TaggedDocument.missing("a known type instead of \(entry.key.prefix(80))")
  }
}
#endif
