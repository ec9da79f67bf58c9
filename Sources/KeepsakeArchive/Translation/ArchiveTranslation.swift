import Foundation

/// Writes values of another format as an archive of the program's types. The layout is described in docs/FORMAT.md.
///
/// Structs are written like hand-written ones, with a key for each field, so that each value may lack different fields.
/// Objects have no keys in an archive, so there is one description of a class for each set of fields that its objects
/// have. Objects wait in a list instead of being written recursively, so a chain of them may have any length.
struct ArchiveTranslation<Source: TranslationSource> {
  typealias Location = Source.Location
  typealias Content = TranslationContent<Location>

  private struct Object {
    let content: TranslationObject<Location>
    /// The index among the program's types.
    let type: Int
    /// Where the object was first found: the object that refers to it, or -1 for the root, and the path from there.
    let holder: Int
    let path: [TranslationStep]
    /// The index among the archive's types.
    var saved = 0
    var values = 0..<0
    var references = 0..<0
  }

  private struct Shape: Hashable {
    let type: Int
    let present: [Bool]
  }

  private struct Lack: Hashable {
    let type: String
    let key: String
  }

  let source: Source
  let schema: ArchiveSchema
  let limits: ArchiveLimits
  private let root: Int32
  /// The archive's types: those of the program under the same numbers, then one per shape of a class.
  var types: [TypeEntry]
  /// By type: the keys of cases that the program doesn't know, and their numbers.
  var unknownCases: [Int: [String: Int]] = [:]
  private var shapes: [Shape: Int] = [:]
  /// The bytes being written.
  var out: [UInt8] = []
  var depth = 0
  /// The path from the object that is being written, or from the root.
  var steps: [TranslationStep] = []
  private var holder = -1
  private var objects: [Object] = []
  private var numbers: [Int: Int] = [:]
  /// The ids of objects that are currently being written as values of structs and enums.
  var open: Set<Int> = []
  /// Pairs of objects: the first needs the second to be built.
  private var needs: [(Int32, Int32)] = []
  private var isNeeding = false
  private var names: [String] = []
  private var nameNumbers: [String: Int] = [:]
  private var wires: [Int32] = []
  private var wireNumbers: [Int32: Int] = [:]
  /// By the program's type: the numbers of its fields' keys and types.
  private var keyNumbers: [Int: [(name: Int, wire: Int)]] = [:]
  /// The path at which a value first lacked a field.
  private var lacks: [Lack: [TranslationStep]] = [:]

  /// The number of steps of a path that are kept; about as many as are shown.
  private static var longestPath: Int { 16 }

  init<V: Archivable>(_ type: V.Type, _ source: Source, classes: [any Archivable.Type], limits: ArchiveLimits) throws {
    let compiled = try CompiledSchema.of(V.self)
    schema = ArchiveSchema(copying: compiled.schema)
    for type in classes { schema.describe(type) }
    schema.markDeferred(from: compiled.typeCount)
    if let problem = schema.problem { throw problem }
    self.source = source
    self.limits = limits
    root = compiled.root
    types = schema.types.map { entry in
      var entry = entry
      if entry.kind == .structure { entry.kind = .keyedValue }
      return entry
    }
  }

  mutating func archive(_ place: Location) throws -> Data {
    try value(root, place)
    let rootBytes = out
    var (values, references): ([UInt8], [UInt8]) = ([], [])
    out = []
    // By index, because writing one object finds others.
    var number = 0
    while number < objects.count {
      try write(number, &values, &references)
      number += 1
    }
    return try assemble(rootBytes, values, references)
  }

  // MARK: Objects

  /// Returns the number of an object, which is written later.
  mutating func reference(to content: TranslationObject<Location>, type: Int) -> Int {
    let number: Int
    if let id = content.id, let known = numbers[id] {
      number = known
    } else {
      number = objects.count
      if let id = content.id { numbers[id] = number }
      objects.append(Object(content: content, type: type, holder: holder, path: steps))
    }
    if isNeeding { needs.append((Int32(truncatingIfNeeded: holder), Int32(truncatingIfNeeded: number))) }
    return number
  }

  private mutating func write(_ number: Int, _ values: inout [UInt8], _ references: inout [UInt8]) throws {
    let object = objects[number]
    let entry = schema.types[object.type]
    (holder, steps, depth) = (number, [], 0)
    let list = TranslationFields<Location>(object.content.fields)
    var isThere = [Bool](repeating: false, count: entry.fields.count)
    let starts = (values.count, references.count)
    for isDeferred in [false, true] {
      isNeeding = !isDeferred
      if isDeferred { swap(&out, &references) } else { swap(&out, &values) }
      for (index, field) in entry.fields.enumerated() where field.deferred == isDeferred {
        guard let (place, content) = try present(field, in: list, of: entry.name) else { continue }
        steps.append(.key(field.key))
        try value(field.node, content, place)
        steps.removeLast()
        isThere[index] = true
      }
      if isDeferred { swap(&out, &references) } else { swap(&out, &values) }
    }
    isNeeding = false
    objects[number].saved = saved(Shape(type: object.type, present: isThere))
    objects[number].values = starts.0..<values.count
    objects[number].references = starts.1..<references.count
  }

  private mutating func saved(_ shape: Shape) -> Int {
    if let known = shapes[shape] { return known }
    var entry = schema.types[shape.type]
    entry.fields = zip(entry.fields, shape.present).filter(\.1).map(\.0)
    types.append(entry)
    shapes[shape] = types.count - 1
    return types.count - 1
  }

  /// Returns the value to write for a field. Returns nil if there is none, or if it is null and the type isn't
  /// optional; the type's default then applies.
  mutating func present(_ field: FieldEntry, in list: TranslationFields<Location>, of type: String) throws -> (
    Location, Content
  )? {
    if let place = list[field.key] {
      let content = try source.content(of: place, at: path + [.key(field.key)])
      if case .null = content, schema.nodes[Int(field.node)].code != .optional {} else { return (place, content) }
    }
    let lack = Lack(type: type, key: field.key)
    if lacks[lack] == nil { lacks[lack] = path }
    return nil
  }

  // MARK: Keys

  /// Returns what is written before each field of a struct: the numbers of its key and of its type.
  mutating func numbers(ofFieldsOf type: Int) -> [(name: Int, wire: Int)] {
    if let known = keyNumbers[type] { return known }
    let numbers = schema.types[type].fields.map { field in
      let name = nameNumbers[field.key] ?? names.count
      if name == names.count {
        names.append(field.key)
        nameNumbers[field.key] = name
      }
      let wire = wireNumbers[field.node] ?? wires.count
      if wire == wires.count {
        wires.append(field.node)
        wireNumbers[field.node] = wire
      }
      return (name, wire)
    }
    keyNumbers[type] = numbers
    return numbers
  }

  // MARK: Errors

  /// The path from the root to the value that is being written.
  var path: [TranslationStep] { path(to: holder, steps) }

  private func path(to object: Int, _ steps: [TranslationStep]) -> [TranslationStep] {
    var parts = [steps]
    var (object, count) = (object, steps.count)
    while object >= 0, count <= Self.longestPath {
      parts.append(objects[object].path)
      count += objects[object].path.count
      object = objects[object].holder
    }
    return parts.reversed().flatMap { $0 }
  }

  func error(_ code: TranslationError.Code, _ message: String) -> TranslationError {
    TranslationError(code, message, path: path)
  }

  func misfit(_ node: Int32, _ place: Location) -> TranslationError {
    error(.mismatch, "expected \(schema.text(node)), found \(source.summary(of: place))")
  }

  func located(_ error: ArchiveError) -> any Error {
    switch error.code {
    case .missingField:
      guard let type = error.type, let field = error.field, let path = lacks[Lack(type: type, key: field)] else {
        return error
      }
      return TranslationError(
        .missing, "There is no value under \"\(field)\", which \(type) needs", path: path + [.key(field)])
    default: return error
    }
  }

  // MARK: The archive

  private func assemble(_ rootBytes: [UInt8], _ values: [UInt8], _ references: [UInt8]) throws -> Data {
    let order = try buildOrder()
    var bytes = ArchiveLayout.magic
    Self.append(ArchiveLayout.version, to: &bytes)
    bytes += [UInt8](repeating: 0, count: ArchiveLayout.headerBytes - bytes.count)
    bytes += rootBytes
    for number in order { bytes += values[objects[number].values] }
    for number in order { bytes += references[objects[number].references] }
    let footer = bytes.count
    let saved = ArchiveSchema(nodes: schema.nodes, types: types)
    let description = saved.encoded(from: 0)
    Varint.append(UInt64(types.count), to: &bytes)
    Varint.append(UInt64(description.count), to: &bytes)
    bytes += description
    Varint.append(0, to: &bytes)
    saved.appendExpression(root, to: &bytes)
    Varint.append(UInt64(names.count), to: &bytes)
    for name in names { Varint.append(name, to: &bytes) }
    Varint.append(UInt64(wires.count), to: &bytes)
    for node in wires { saved.appendExpression(node, to: &bytes) }
    for count in [rootBytes.count, values.count, references.count, objects.count] {
      Varint.append(UInt64(count), to: &bytes)
    }
    appendRuns(order, to: &bytes)
    Self.append(UInt64(footer), to: &bytes)
    let sum = bytes.withUnsafeBytes { Checksum.xxh64($0) }
    Self.append(sum, to: &bytes)
    return Data(bytes)
  }

  /// Appends the runs: consecutive objects with the same description, with the differences between their numbers.
  private func appendRuns(_ order: [Int], to bytes: inout [UInt8]) {
    var runs: [Range<Int>] = []
    for (place, number) in order.enumerated() {
      if let last = runs.last, objects[order[last.lowerBound]].saved == objects[number].saved {
        runs[runs.count - 1] = last.lowerBound..<place + 1
      } else {
        runs.append(place..<place + 1)
      }
    }
    Varint.append(UInt64(runs.count), to: &bytes)
    for run in runs {
      Varint.append(UInt64(objects[order[run.lowerBound]].saved), to: &bytes)
      Varint.append(UInt64(run.count), to: &bytes)
      bytes.append(1)
      var last = 0
      for place in run {
        Varint.append(Self.zigzag(Int64(order[place] - last)), to: &bytes)
        last = order[place]
      }
    }
  }

  private func buildOrder() throws -> [Int] {
    let order = BuildOrder(count: objects.count, edges: needs)
    guard order.blocked.isEmpty else { throw circle(order.blocked) }
    return objects.indices.sorted {
      (order.levels[$0], objects[$0].saved, $0) < (order.levels[$1], objects[$1].saved, $1)
    }
  }

  /// Returns the error for a cycle. Each blocked object needs another blocked one, so following them ends in a cycle.
  private func circle(_ blocked: Set<Int32>) -> TranslationError {
    var next: [Int32: Int32] = [:]
    for (from, to) in needs where blocked.contains(from) && blocked.contains(to) { next[from] = to }
    var number = blocked.min() ?? 0
    for _ in 0..<blocked.count { number = next[number] ?? number }
    let object = objects[Int(number)]
    return TranslationError(
      .cycle,
      """
      An object that becomes a \(schema.types[object.type].name) refers back to itself through required references, \
      so it can't be built: make one of them an optional variable
      """,
      path: path(to: object.holder, object.path))
  }

  // MARK: Bytes

  static func append(_ value: some FixedWidthInteger, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: value.littleEndian) { bytes += $0 }
  }

  static func zigzag(_ value: Int64) -> UInt64 { UInt64(bitPattern: (value << 1) ^ (value >> 63)) }
}

/// Values by key. If a key occurs twice, the last value is used.
struct TranslationFields<Location> {
  private let fields: [TranslationContent<Location>.Field]
  /// The index of each key, if there are too many fields for a linear search.
  private var places: [String: Int]?
  private static var few: Int { 8 }

  init(_ fields: [TranslationContent<Location>.Field]) {
    self.fields = fields
    guard fields.count > Self.few else { return }
    places = Dictionary(fields.enumerated().map { ($1.key, $0) }, uniquingKeysWith: { _, last in last })
  }

  subscript(key: String) -> Location? {
    guard let places else { return fields.last { $0.key == key }?.value }
    return places[key].map { fields[$0].value }
  }
}
