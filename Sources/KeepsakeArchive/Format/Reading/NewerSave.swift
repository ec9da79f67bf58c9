package import Foundation

extension Archive {
  /// The first bytes of every archive.
  package static var magic: [UInt8] { ArchiveLayout.magic }

  /// Returns an error if the bytes are an archive that a program with these declarations must leave unchanged;
  /// otherwise nil.
  ///
  /// This is an archive with a newer format or with a type of a newer version. Bytes that aren't an archive, or are a
  /// damaged one, can't be a save of a newer program: nil. Types are matched as in decoding, by their position in the
  /// declarations, and classes by name. A type that occurs only in hand-written values is matched by its name, if it
  /// occurs anywhere in the declarations. Costs a checksum of the bytes; reads no values.
  ///
  /// - Throws: `ArchiveError` with `limit` if a limit prevents the check, and any problem of `type` itself.
  package static func newerSave<V: Archivable>(
    than type: V.Type, in data: Data, classes: [any Archivable.Type] = [], limits: ArchiveLimits = .standard
  ) throws -> ArchiveError? {
    let compiled = try CompiledSchema.of(V.self)
    let program = classes.isEmpty ? compiled.schema : ArchiveSchema(copying: compiled.schema)
    for type in classes { program.describe(type) }
    return try data.withUnsafeBytes { bytes in
      do {
        let file = try ArchiveFile(bytes, limits: limits)
        var search = NewerTypes(file: file.schema, program: program)
        return search.first(fileRoot: file.root, programRoot: compiled.root)
      } catch let error as ArchiveError where error.code == .tooNew {
        return error
      } catch let error as ArchiveError where [.missing, .notAnArchive, .damaged].contains(error.code) {
        return nil
      }
    }
  }
}

/// Searches for a saved type with a newer version than the program's.
private struct NewerTypes {
  private struct Pair: Hashable {
    let file: Int
    let program: Int
  }

  let file: ArchiveSchema
  let program: ArchiveSchema
  private var seen: Set<Pair> = []
  /// The same pairs in the order in which they were found. A loop instead of recursion, because an altered archive can
  /// describe a chain of any length.
  private var queue: [Pair] = []
  private var isReached: [Bool]

  init(file: ArchiveSchema, program: ArchiveSchema) {
    self.file = file
    self.program = program
    isReached = Array(repeating: false, count: file.types.count)
  }

  mutating func first(fileRoot: Int32, programRoot: Int32) -> ArchiveError? {
    meet(fileRoot, programRoot)
    var classes: [String: Int] = [:]
    var newest: [String: Int] = [:]
    for (index, entry) in program.types.enumerated() {
      if entry.kind.isObject, classes[entry.name] == nil { classes[entry.name] = index }
      newest[entry.name] = max(newest[entry.name] ?? 0, entry.version)
    }
    for (index, entry) in file.types.enumerated() where entry.kind.isObject {
      if let own = classes[entry.name] { meetTypes(index, own) }
    }
    var next = 0
    while next < queue.count {
      let (saved, own) = (file.types[queue[next].file], program.types[queue[next].program])
      if saved.version > own.version { return error(own.name, saved: saved.version, own: own.version) }
      meet(saved.fields, own.fields)
      let cases = Dictionary(own.cases.map { ($0.key, $0.fields) }, uniquingKeysWith: { first, _ in first })
      for enumCase in saved.cases { if let fields = cases[enumCase.key] { meet(enumCase.fields, fields) } }
      next += 1
    }
    for (index, entry) in file.types.enumerated() where !isReached[index] {
      if let own = newest[entry.name], entry.version > own { return error(entry.name, saved: entry.version, own: own) }
    }
    return nil
  }

  private mutating func meet(_ saved: [FieldEntry], _ own: [FieldEntry]) {
    let nodes = Dictionary(own.map { ($0.key, $0.node) }, uniquingKeysWith: { first, _ in first })
    for field in saved { if let node = nodes[field.key] { meet(field.node, node) } }
  }

  /// Recursive along the saved type expression, whose nesting is limited when it is parsed.
  private mutating func meet(_ saved: Int32, _ own: Int32) {
    let (left, right) = (file.nodes[Int(saved)], program.nodes[Int(own)])
    switch (left.code, right.code) {
    case (.named, .named): meetTypes(Int(left.first), Int(right.first))
    case (.optional, .optional), (.array, .array), (.set, .set): meet(left.first, right.first)
    case (.dictionary, .dictionary):
      meet(left.first, right.first)
      meet(left.second, right.second)
    case (.optional, _): meet(left.first, own)
    case (_, .optional): meet(saved, right.first)
    default: break
    }
  }

  private mutating func meetTypes(_ saved: Int, _ own: Int) {
    isReached[saved] = true
    let pair = Pair(file: saved, program: own)
    if seen.insert(pair).inserted { queue.append(pair) }
  }

  private func error(_ name: String, saved: Int, own: Int) -> ArchiveError {
    ArchiveError(
      .tooNew, "A save has version \(saved) of this type, and the program knows versions up to \(own): update the game",
      type: name)
  }
}
