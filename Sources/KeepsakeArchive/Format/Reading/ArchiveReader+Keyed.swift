/// The fields of a hand-written value, located before its initialiser runs.
struct KeyedFields {
  struct Entry {
    let key: String
    let node: Int32
    let start: UnsafeRawPointer
    let length: Int
  }

  let entries: [Entry]
  let version: Int
}

extension ArchiveReader {
  /// The version of the type when the value was written: 1 unless its `archiveVersion` was set.
  public var savedVersion: Int { keyed?.version ?? 1 }

  /// The keys that the value was saved with, in the order in which they were written.
  public var keys: [String] { keyed?.entries.map(\.key) ?? [] }

  /// Reads the value under a key.
  ///
  /// - Parameters:
  ///   - type: The type to read the value as: its saved type or one that fits, such as a wider integer type, or
  ///     `Double` for an integer.
  ///   - key: The field's key.
  /// - Returns: The value.
  /// - Throws: `ArchiveError` with `missingField` if there is none, or only an empty optional and `type` isn't
  ///   optional; `mismatch` if it doesn't fit `type`; `unsupported` if the conformance that reads is generated; and
  ///   what else reading it throws.
  public mutating func decode<T: Archivable>(_ type: T.Type, forKey key: String) throws -> T {
    guard let value = try decodeIfPresent(type, forKey: key) else {
      throw ArchiveError(.missingField, "The archive has no value under this key", field: key, offset: offset)
    }
    return value
  }

  /// Reads the value under a key, or returns a default if there is none, or only an empty optional.
  ///
  /// - Parameters:
  ///   - type: As for `decode(_:forKey:)`.
  ///   - key: The field's key.
  ///   - value: The default. Evaluated only if it is needed.
  /// - Returns: The value, or the default.
  /// - Throws: As `decode(_:forKey:)` if there is a value; what the default throws if there is none.
  public mutating func decode<T: Archivable>(
    _ type: T.Type, forKey key: String, default value: @autoclosure () throws -> T
  ) throws -> T {
    try decodeIfPresent(type, forKey: key) ?? value()
  }

  /// Reads the value under a key, if there is one.
  ///
  /// - Parameters:
  ///   - type: As for `decode(_:forKey:)`.
  ///   - key: The field's key.
  /// - Returns: The value; nil if there is none, or only an empty optional.
  /// - Throws: As `decode(_:forKey:)` if there is a value.
  public mutating func decodeIfPresent<T: Archivable>(_ type: T.Type, forKey key: String) throws -> T? {
    guard let keyed else {
      throw ArchiveError(
        .unsupported, "decode(_:forKey:) is for hand-written conformances; this type's fields were generated")
    }
    guard let entry = keyed.entries.first(where: { $0.key == key }) else { return nil }
    if !(type is any OptionalValue.Type), try isEmpty(entry) { return nil }
    let outer = (cursor, end, isExact, current, depth)
    defer {
      (cursor, end, isExact, current, depth) = outer
      blockWidth = 0
      self.keyed = keyed
    }
    cursor = entry.start
    // Limited to the value's own bytes: overlapping values would be read repeatedly, twice as often with each level.
    end = entry.start + entry.length
    isExact = false
    current = entry.node
    self.keyed = nil
    do {
      let value = try T.archiveRead(from: &self)
      try checkValueEnd()
      return value
    } catch var error as ArchiveError {
      if error.field == nil { error.field = key }
      throw error
    }
  }

  /// Returns whether an empty optional was saved.
  private mutating func isEmpty(_ entry: KeyedFields.Entry) throws -> Bool {
    guard core.nodes[Int(entry.node)].code == .optional else { return false }
    return try isEmptyOptional(entry.node, from: entry.start, to: entry.start + entry.length)
  }

  /// Throws unless a value used all of its bytes. `end` must be set to the end of those.
  mutating func checkValueEnd() throws {
    guard cursor == end else { throw damaged("A value's length differs from the one that the archive specifies") }
  }

  @usableFromInline mutating func readKeyed<T: Archivable>(_ type: T.Type) throws -> T {
    try openKeyed(type) { try T(from: &$0) }
  }

  mutating func openKeyed<T: Archivable, R>(_ type: T.Type, _ body: (inout ArchiveReader) throws -> R) throws -> R {
    try descend()
    let outer = (keyed, isExact, current)
    if isExact {
      keyed = KeyedFields(entries: try scanKeyed(), version: T.archiveVersion)
    } else {
      try unwrapPresentOptional(T.archiveName)
      let node = core.nodes[Int(current)]
      guard node.code == .named else { throw mismatch(T.archiveName) }
      let plan = try core.plan(type, node.first)
      keyed = KeyedFields(entries: plan.isKeyed ? try scanKeyed() : try scanFields(plan), version: plan.savedVersion)
    }
    let end = cursor
    let value = try body(&self)
    cursor = end
    (keyed, isExact, current) = outer
    ascend()
    return value
  }

  /// Skips a hand-written value and records the locations of its fields.
  mutating func scanKeyed() throws -> [KeyedFields.Entry] {
    var entries: [KeyedFields.Entry] = []
    while true {
      let name = try takeVarint()
      if name == 0 { return entries }
      guard name <= UInt64(core.names.count) else { throw damaged("A key is out of range") }
      let wire = try takeVarint()
      guard wire < UInt64(core.wires.count) else { throw damaged("The type of a value under a key is out of range") }
      let length = Int(clamping: try takeFixed(UInt32.self))
      try need(length)
      guard entries.count < core.limits.fields else {
        throw ArchiveError(.limit, "A value has more than \(core.limits.fields) keys", offset: offset)
      }
      entries.append(.init(key: core.names[Int(name) - 1], node: core.wires[Int(wire)], start: cursor, length: length))
      cursor += length
    }
  }

  /// Locates the fields of a value that was written by generated code, so that it can be read by key.
  private mutating func scanFields(_ plan: FieldPlan) throws -> [KeyedFields.Entry] {
    guard plan.cases.isEmpty else { throw mismatch(plan.name) }
    if plan.isEmptyStruct { _ = try takeByte() }
    return try scanFields(plan.fields, inReferences: plan.isObject && isInReferences)
  }

  /// Skips generated fields and records their locations. For an object, only those of one section.
  mutating func scanFields(_ fields: [FieldEntry], inReferences: Bool) throws -> [KeyedFields.Entry] {
    var entries: [KeyedFields.Entry] = []
    for field in fields where field.deferred == inReferences {
      let start = cursor
      try skip(field.node)
      entries.append(.init(key: field.key, node: field.node, start: start, length: cursor - start))
    }
    return entries
  }
}

/// Detects optionals where only the type is known.
private protocol OptionalValue {}
extension Optional: OptionalValue {}
