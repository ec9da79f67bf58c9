import Foundation

/// Translates values that contain other values. Calls itself once per level, at most `ArchiveLimits.depth` times.
extension ArchiveTranslation {
  mutating func value(_ node: Int32, _ place: Location) throws {
    try value(node, try source.content(of: place, at: path), place)
  }

  /// Writes a value in the layout of the program's type.
  mutating func value(_ node: Int32, _ content: Content, _ place: Location) throws {
    guard source.take(1) else { throw tooMany() }
    let wire = schema.nodes[Int(node)]
    switch wire.code {
    case .optional: try optional(wire, content, place)
    case .array, .set, .dictionary, .vector, .named:
      depth += 1
      guard depth <= limits.depth else { throw error(.limit, "Values are nested more than \(limits.depth) deep") }
      switch wire.code {
      case .dictionary: try dictionary(node, content, place)
      case .vector: try vector(node, content, place)
      case .named: try named(node, content, place)
      default: try list(node, content, place)
      }
      depth -= 1
    default: try scalar(wire.code, node, content, place, isInBlock: false)
    }
  }

  func tooMany() -> TranslationError {
    error(
      .limit,
      "Decoding would create far more values than the file contains, because it refers to the same ones again and again"
    )
  }

  private mutating func optional(_ wire: WireNode, _ content: Content, _ place: Location) throws {
    let isObject = schema.isObject(wire.first)
    if case .null = content {
      if isObject { Varint.append(0, to: &out) } else { out.append(0) }
      return
    }
    if !isObject { out.append(1) }
    try value(wire.first, content, place)
  }

  private func missing(_ node: Int32) -> TranslationError {
    error(.missing, "Found nil where \(schema.text(node)) is expected")
  }

  /// Returns what a text or data value contains if it doesn't fit the type itself.
  private func unfolded(_ content: Content, of place: Location) throws -> Content {
    switch content {
    case .string, .data: try source.unfolded(content, of: place, at: path) ?? content
    default: content
    }
  }

  // MARK: Lists

  private mutating func list(_ node: Int32, _ content: Content, _ place: Location) throws {
    let wire = schema.nodes[Int(node)]
    let element = schema.nodes[Int(wire.first)].code
    let isBlock = wire.code == .array && element.scalarBytes > 0 && element != .bool
    if case .data(let data) = content, isBlock, element.scalarBytes == 1 {
      guard source.take(bytes: data.count) else { throw tooMany() }
      Varint.append(UInt64(data.count), to: &out)
      out += data
      return
    }
    let places: [Location]
    switch try unfolded(content, of: place) {
    case .list(let elements), .set(let elements): places = elements
    case .tuple(let parts, _): places = parts.map(\.value)
    case .null: throw missing(node)
    default: throw misfit(node, place)
    }
    Varint.append(UInt64(places.count), to: &out)
    // A block's integers may be narrower than their type, but are written in full width here.
    if isBlock, element.isInteger, element.scalarBytes > 1, !places.isEmpty { out.append(UInt8(element.scalarBytes)) }
    for (index, place) in places.enumerated() {
      steps.append(.index(index))
      if isBlock {
        guard source.take(1) else { throw tooMany() }
        try scalar(element, wire.first, try source.content(of: place, at: path), place, isInBlock: true)
      } else {
        try value(wire.first, place)
      }
      steps.removeLast()
    }
  }

  private mutating func dictionary(_ node: Int32, _ content: Content, _ place: Location) throws {
    let wire = schema.nodes[Int(node)]
    switch try unfolded(content, of: place) {
    case .pairs(let pairs):
      Varint.append(UInt64(pairs.count), to: &out)
      for (index, pair) in pairs.enumerated() {
        let key = try source.content(of: pair.key, at: path + [.index(index)])
        steps.append(Self.text(key).map { .key($0) } ?? .index(index))
        try value(wire.first, key, pair.key)
        try value(wire.second, pair.value)
        steps.removeLast()
      }
    case .fields(let fields):
      // If a key occurs twice, the last value is used, as in other readers.
      let last = Dictionary(fields.enumerated().map { ($1.key, $0) }, uniquingKeysWith: { $1 })
      Varint.append(UInt64(last.count), to: &out)
      for (index, field) in fields.enumerated() where last[field.key] == index {
        steps.append(.key(field.key))
        try value(wire.first, .string(field.key), field.value)
        try value(wire.second, field.value)
        steps.removeLast()
      }
    case .null: throw missing(node)
    default: throw misfit(node, place)
    }
  }

  /// Returns a key as text, for paths and for the fields of structs.
  private static func text(_ content: Content) -> String? {
    switch content {
    case .string(let text): text
    case .integer(let number): "\(number)"
    case .uuid(let uuid): uuid.uuidString
    default: nil
    }
  }

  /// Writes numbers in their order; for a rectangle, first those of its point, then those of its size.
  private mutating func vector(_ node: Int32, _ content: Content, _ place: Location) throws {
    let wire = schema.nodes[Int(node)]
    guard let code = WireCode(rawValue: UInt8(truncatingIfNeeded: wire.first)) else { throw misfit(node, place) }
    var numbers: [(Content, Location)] = []
    func add(_ content: Content, _ place: Location, _ level: Int) throws {
      switch content {
      case .tuple(let parts, _) where level < 2:
        for part in parts { try add(try source.content(of: part.value, at: path), part.value, level + 1) }
      case .list(let elements) where level == 0:
        for place in elements.prefix(Int(wire.second) + 1) {
          try add(try source.content(of: place, at: path), place, 2)
        }
      default: numbers.append((content, place))
      }
    }
    if case .null = content { throw missing(node) }
    try add(try unfolded(content, of: place), place, 0)
    guard numbers.count == Int(wire.second) else { throw misfit(node, place) }
    for (index, (content, place)) in numbers.enumerated() {
      steps.append(.index(index))
      try scalar(code, node, content, place, isInBlock: true)
      steps.removeLast()
    }
  }

  // MARK: Types

  private mutating func named(_ node: Int32, _ given: Content, _ place: Location) throws {
    let type = Int(schema.nodes[Int(node)].first)
    let entry = schema.types[type]
    if case .null = given { throw missing(node) }
    if entry.kind.isKeyed {
      throw error(
        .unsupported,
        "\(entry.name) has a hand-written conformance, so its fields aren't known here: mark it @Archivable")
    }
    if entry.kind == .enumeration { return try enumeration(type, node, given, place) }
    let content = try unfolded(given, of: place)
    if entry.kind == .object {
      guard case .object(let object) = content, let own = try number(of: object, node, place) else {
        throw misfit(node, place)
      }
      Varint.append(UInt64(reference(to: object, type: own) + 1), to: &out)
      return
    }
    if case .object(let object) = content, try number(of: object, node, place) != type { throw misfit(node, place) }
    guard let fields = try fields(of: content) else { throw misfit(node, place) }
    try enter(content, type)
    try structure(type, fields)
    leave(content)
  }

  /// Records that an object is being written in place, as a struct or enum.
  private mutating func enter(_ content: Content, _ type: Int) throws {
    guard case .object(let object) = content, let id = object.id, !open.insert(id).inserted else { return }
    throw error(
      .cycle,
      """
      An object that becomes a \(schema.types[type].name) refers back to itself, which only a class can do: declare \
      the type as a class
      """)
  }

  private mutating func leave(_ content: Content) {
    if case .object(let object) = content, let id = object.id { open.remove(id) }
  }

  /// Returns the index of the program's type that an object becomes. Throws if that type doesn't fit the declared one.
  private func number(of object: TranslationObject<Location>, _ node: Int32, _ place: Location) throws -> Int? {
    guard let own = schema.typeIndex(of: ObjectIdentifier(object.type)) else { return nil }
    let declared = schema.nodes[Int(node)].first
    let entry = schema.types[Int(own)]
    let fits = own == declared || entry.superclasses.contains { $0.name == schema.types[Int(declared)].name }
    guard fits else {
      throw error(
        .mismatch,
        "Found \(source.summary(of: place)), which becomes a \(entry.name), where \(schema.text(node)) is expected")
    }
    return Int(own)
  }

  /// Returns nil for content without keys.
  private func fields(of content: Content) throws -> [Content.Field]? {
    switch content {
    case .object(let object): return object.fields
    case .fields(let fields): return fields
    case .tuple(let parts, let others): return parts + others
    case .pairs(let pairs):
      var fields: [Content.Field] = []
      for pair in pairs {
        guard let key = Self.text(try source.content(of: pair.key, at: path)) else { return nil }
        fields.append((key, pair.value))
      }
      return fields
    default: return nil
    }
  }

  private mutating func structure(_ type: Int, _ fields: [Content.Field]) throws {
    let entry = schema.types[type]
    let list = TranslationFields<Location>(fields)
    let numbers = numbers(ofFieldsOf: type)
    for (field, number) in zip(entry.fields, numbers) {
      guard let (place, content) = try present(field, in: list, of: entry.name) else { continue }
      Varint.append(UInt64(number.name + 1), to: &out)
      Varint.append(UInt64(number.wire), to: &out)
      let start = out.count
      Self.append(UInt32(0), to: &out)
      steps.append(.key(field.key))
      try value(field.node, content, place)
      guard let length = UInt32(exactly: out.count - start - 4) else {
        throw error(.limit, "A value takes more than 4 GiB")
      }
      steps.removeLast()
      for index in 0..<4 { out[start + index] = UInt8(truncatingIfNeeded: length >> UInt32(8 * index)) }
    }
    Varint.append(0, to: &out)
  }

  // MARK: Enums

  /// Writes the case that has the text or number as its raw value, or else as its key. A case with a payload is a
  /// dictionary or object with that one key.
  private mutating func enumeration(_ type: Int, _ node: Int32, _ content: Content, _ place: Location) throws {
    var payload: Location?
    let key: String
    switch content {
    case .string(let text): key = text
    case .integer(let number): key = "\(number)"
    case .number(let number):
      guard let whole = Int64(exactly: number) else { throw misfit(node, place) }
      key = "\(whole)"
    case .object(let object) where schema.typeIndex(of: ObjectIdentifier(object.type)).map({ Int($0) }) != type:
      return try wrapped(object, type, node, content, place)
    default:
      guard let fields = try fields(of: content), fields.count == 1 else { throw misfit(node, place) }
      (key, payload) = (fields[0].key, fields[0].value)
    }
    try enter(content, type)
    defer { leave(content) }
    let cases = schema.types[type].cases
    guard let index = cases.firstIndex(where: { $0.rawValue == key }) ?? cases.firstIndex(where: { $0.key == key })
    else {
      return Varint.append(UInt64(try unknownCase(key, of: type)), to: &out)
    }
    Varint.append(UInt64(index), to: &out)
    let declared = cases[index].fields
    guard !declared.isEmpty else { return }
    guard let payload else { throw error(.missing, "The case \"\(key)\" of \(schema.types[type].name) has no payload") }
    steps.append(.key(key))
    guard let fields = try fields(of: try source.content(of: payload, at: path)) else { throw misfit(node, payload) }
    let list = TranslationFields<Location>(fields)
    for field in declared {
      steps.append(.key(field.key))
      if let place = list[field.key] {
        try value(field.node, place)
      } else {
        guard schema.nodes[Int(field.node)].code == .optional else {
          throw error(.missing, "There is no value under \"\(field.key)\"")
        }
        try value(field.node, .null, payload)
      }
      steps.removeLast()
    }
    steps.removeLast()
  }

  /// Writes a case whose only payload is the type that the object becomes.
  private mutating func wrapped(
    _ object: TranslationObject<Location>, _ type: Int, _ node: Int32, _ content: Content, _ place: Location
  ) throws {
    guard let own = schema.typeIndex(of: ObjectIdentifier(object.type)) else { throw misfit(node, place) }
    let names = [schema.types[Int(own)].name] + schema.types[Int(own)].superclasses.map(\.name)
    // The nearest class wins; a subclass without a case of its own uses the case of its superclass.
    for name in names {
      let fitting = schema.types[type].cases.firstIndex { enumCase in
        guard enumCase.fields.count == 1 else { return false }
        let wire = schema.nodes[Int(enumCase.fields[0].node)]
        return wire.code == .named && schema.types[Int(wire.first)].name == name
      }
      guard let fitting else { continue }
      Varint.append(UInt64(fitting), to: &out)
      return try value(schema.types[type].cases[fitting].fields[0].node, content, place)
    }
    throw misfit(node, place)
  }

  /// Returns the archive's number for a case that the program doesn't know, adding the case if it is new.
  private mutating func unknownCase(_ key: String, of type: Int) throws -> Int {
    guard schema.types[type].fallback != nil else {
      throw error(.mismatch, "\(schema.types[type].name) has no case \"\(key.prefix(80))\"")
    }
    if let known = unknownCases[type]?[key] { return known }
    types[type].cases.append(CaseEntry(key: key, fields: []))
    let number = types[type].cases.count - 1
    unknownCases[type, default: [:]][key] = number
    return number
  }
}
