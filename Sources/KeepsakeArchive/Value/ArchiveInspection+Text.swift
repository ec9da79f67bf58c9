import Foundation

/// What people and scripts read.
extension ArchiveInspection {
  /// The types, the root and all objects as indented text; long lists are cut.
  ///
  /// - Parameter longest: Elements shown of a list, and characters shown of a string.
  public func text(longest: Int = 50) -> String {
    var lines = [
      "archive, format \(header.formatVersion), \(header.byteCount) bytes, \(header.objectCount) objects, root \(header.rootType)", "",
      "types",
    ]
    for type in types {
      lines.append("  \(type.name)  version \(type.version), \(type.kind.rawValue), \(type.count) of them, \(type.byteCount) bytes")
      for field in type.fields { lines.append("    \(field.key): \(field.type)") }
      for enumCase in type.cases {
        let payload = enumCase.fields.map { "\($0.key): \($0.type)" }.joined(separator: ", ")
        lines.append("    case \(enumCase.name)\(payload.isEmpty ? "" : "(\(payload))")")
      }
    }
    lines += ["", "root"]
    append(root, "", indent: 1, longest, &lines)
    for (number, object) in objects.enumerated() {
      guard let object else {
        lines += ["", "#\(number) not saved, only referred to"]
        continue
      }
      lines += ["", "#\(number) \(types[object.type].name)"]
      for field in object.fields { append(field.value, field.key + ": ", indent: 1, longest, &lines) }
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private func append(_ value: ArchiveValue, _ label: String, indent: Int, _ longest: Int, _ lines: inout [String]) {
    let margin = String(repeating: "  ", count: indent)
    func open(_ title: String, _ fields: [ArchiveValue.Field]) {
      lines.append(margin + label + title)
      for field in fields { append(field.value, field.key + ": ", indent: indent + 1, longest, &lines) }
    }
    switch value {
    case .structure(let type, let fields): open(types[type].name, fields)
    case .enumeration(_, let name, let fields): open(".\(name)", fields)
    case .array(let values), .set(let values):
      if values.allSatisfy(Self.isPlain) {
        let shown = values.prefix(longest).map { Self.plain($0, longest) }.joined(separator: ", ")
        lines.append(margin + label + "[\(shown)\(values.count > longest ? ", ... \(values.count) in all" : "")]")
        return
      }
      lines.append(margin + label + "\(values.count) elements")
      for (index, element) in values.prefix(longest).enumerated() { append(element, "\(index): ", indent: indent + 1, longest, &lines) }
      if values.count > longest { lines.append(margin + "  ...") }
    case .dictionary(let pairs):
      lines.append(margin + label + "\(pairs.count) pairs")
      for pair in pairs.prefix(longest) {
        if Self.isPlain(pair.key) {
          append(pair.value, Self.plain(pair.key, longest) + ": ", indent: indent + 1, longest, &lines)
        } else {
          append(pair.key, "key ", indent: indent + 1, longest, &lines)
          append(pair.value, "value ", indent: indent + 1, longest, &lines)
        }
      }
      if pairs.count > longest { lines.append(margin + "  ...") }
    default: lines.append(margin + label + Self.plain(value, longest))
    }
  }

  private static func isPlain(_ value: ArchiveValue) -> Bool {
    switch value {
    case .structure, .array, .set, .dictionary: false
    case .enumeration(_, _, let fields): fields.isEmpty
    default: true
    }
  }

  private static func plain(_ value: ArchiveValue, _ longest: Int) -> String {
    switch value {
    case .none: "nil"
    case .bool(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .unsigned(let value): "\(value)"
    case .number(let value): "\(value)"
    case .decimal(let digits): digits
    case .string(let text): "\"" + (text.count > longest ? text.prefix(longest) + "..." : text[...]).debugDescription.dropFirst()
    case .data(let data): "\(data.count) bytes " + data.prefix(16).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    case .date(let date): date.timeIntervalSinceReferenceDate.isFinite ? date.ISO8601Format() : "\(date.timeIntervalSinceReferenceDate) s"
    case .uuid(let uuid): uuid.uuidString
    case .url(let text): text
    case .vector(let values): "(" + values.map { plain($0, longest) }.joined(separator: ", ") + ")"
    case .reference(let number): "#\(number)"
    case .enumeration(_, let name, _): ".\(name)"
    case .structure, .array, .set, .dictionary: "..."
    }
  }
}

/// For JSON: structs are objects with their keys, references are `{"$ref": n}`, enum cases `{"$case": name, ...}`; numbers that JSON
/// doesn't have are strings; dictionaries with other keys than strings are lists of pairs.
extension ArchiveInspection: Encodable {
  private enum Keys: String, CodingKey { case header, types, root, objects }

  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(_ text: String) { stringValue = text }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  private struct Node: Encodable {
    let value: ArchiveValue
    func encode(to encoder: any Encoder) throws { try ArchiveInspection.encode(value, to: encoder) }
  }

  private struct ObjectNode: Encodable {
    let number: Int
    let name: String
    let fields: [ArchiveValue.Field]
    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(number, forKey: Key("$id"))
      try container.encode(name, forKey: Key("$type"))
      for field in fields { try container.encode(Node(value: field.value), forKey: Key(field.key)) }
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Keys.self)
    try container.encode(header, forKey: .header)
    try container.encode(types, forKey: .types)
    try container.encode(Node(value: root), forKey: .root)
    let saved = objects.enumerated().compactMap { number, object in
      object.map { ObjectNode(number: number, name: types[$0.type].name, fields: $0.fields) }
    }
    try container.encode(saved, forKey: .objects)
  }

  private static func encode(_ value: ArchiveValue, to encoder: any Encoder) throws {
    func one(_ value: some Encodable) throws {
      var container = encoder.singleValueContainer()
      try container.encode(value)
    }
    switch value {
    case .none:
      var container = encoder.singleValueContainer()
      try container.encodeNil()
    case .bool(let value): try one(value)
    case .integer(let value): try one(value)
    case .unsigned(let value): try one(value)
    case .number(let value): if value.isFinite { try one(value) } else { try one("\(value)") }
    case .string(let text), .url(let text), .decimal(let text): try one(text)
    case .data(let data): try one(data.base64EncodedString())
    case .date(let date): if date.timeIntervalSinceReferenceDate.isFinite { try one(date.ISO8601Format()) } else { try one("invalid date") }
    case .uuid(let uuid): try one(uuid.uuidString)
    case .vector(let values), .array(let values), .set(let values):
      var container = encoder.unkeyedContainer()
      for value in values { try container.encode(Node(value: value)) }
    case .dictionary(let pairs): try encode(pairs, to: encoder)
    case .structure(_, let fields):
      var container = encoder.container(keyedBy: Key.self)
      for field in fields { try container.encode(Node(value: field.value), forKey: Key(field.key)) }
    case .enumeration(_, let name, let fields):
      if fields.isEmpty { return try one(name) }
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(name, forKey: Key("$case"))
      for field in fields { try container.encode(Node(value: field.value), forKey: Key(field.key)) }
    case .reference(let number):
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(number, forKey: Key("$ref"))
    }
  }

  private static func encode(_ pairs: [ArchiveValue.Pair], to encoder: any Encoder) throws {
    let keys = pairs.compactMap { pair -> String? in
      if case .string(let key) = pair.key { return key }
      return nil
    }
    if keys.count == pairs.count {
      var container = encoder.container(keyedBy: Key.self)
      for (key, pair) in zip(keys, pairs) { try container.encode(Node(value: pair.value), forKey: Key(key)) }
    } else {
      var container = encoder.unkeyedContainer()
      for pair in pairs { try container.encode([Node(value: pair.key), Node(value: pair.value)]) }
    }
  }
}
