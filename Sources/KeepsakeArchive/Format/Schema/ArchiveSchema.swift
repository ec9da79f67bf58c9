/// A position in a schema that describes a value's layout.
public struct ArchiveWireType: Sendable {
  @usableFromInline let node: Int32
}

/// The description of all types that a value leads to, built from the program's types or read from an archive.
///
/// Building is deterministic: types are numbered in the order in which a traversal from the root reaches them.
public final class ArchiveSchema {
  package private(set) var nodes: [WireNode] = []
  @exclusivity(unchecked) package private(set) var types: [TypeEntry] = []
  private var typeIndexes: [ObjectIdentifier: Int32] = [:]
  private var typeNodes: [ObjectIdentifier: Int32] = [:]
  /// The first problem found while the program's types were described.
  private(set) var problem: ArchiveError?

  init() {}

  init(copying other: ArchiveSchema) {
    nodes = other.nodes
    types = other.types
    typeIndexes = other.typeIndexes
    typeNodes = other.typeNodes
  }

  /// Creates a schema from parts of an archive, which have been validated.
  package init(nodes: [WireNode], types: [TypeEntry]) {
    self.nodes = nodes + types.indices.map { WireNode(.named, Int32($0)) }
    self.types = types
    for index in types.indices {
      self.types[index].node = Int32(nodes.count + index)
      self.types[index].deferred = FieldMask(types[index].fields.map(\.deferred))
    }
  }

  // MARK: Building

  func node<T: Archivable>(of type: T.Type) -> Int32 {
    let id = ObjectIdentifier(type)
    if let known = typeNodes[id] { return known }
    let node = T.archiveWireType(in: self).node
    typeNodes[id] = node
    return node
  }

  func typeIndex(of id: ObjectIdentifier) -> Int32? { typeIndexes[id] }

  func scalar(_ code: WireCode) -> ArchiveWireType { append(WireNode(code)) }

  func composite<A: Archivable>(_ code: WireCode, _ first: A.Type) -> ArchiveWireType {
    append(WireNode(code, node(of: first)))
  }

  func dictionary<K: Archivable, V: Archivable>(_ key: K.Type, _ value: V.Type) -> ArchiveWireType {
    let first = node(of: key)
    return append(WireNode(.dictionary, first, node(of: value)))
  }

  func vector(_ scalar: WireCode, count: Int) -> ArchiveWireType {
    append(WireNode(.vector, Int32(scalar.rawValue), Int32(count)))
  }

  private func append(_ node: WireNode) -> ArchiveWireType {
    nodes.append(node)
    return ArchiveWireType(node: Int32(nodes.count - 1))
  }

  func named<T: Archivable>(_ type: T.Type) -> ArchiveWireType {
    let id = ObjectIdentifier(type)
    if let known = typeNodes[id] { return ArchiveWireType(node: known) }
    let index = Int32(types.count)
    let wire = append(WireNode(.named, index))
    typeNodes[id] = wire.node
    typeIndexes[id] = index
    let isObject = T.self is AnyObject.Type
    var entry = TypeEntry(kind: isObject ? .object : .structure, name: T.archiveName, version: T.archiveVersion)
    (entry.node, entry.type) = (wire.node, type)
    if isObject { entry.codec = ObjectCodec.of(type) }
    types.append(entry)
    let list = ArchiveFieldList(schema: self, type: id)
    T.archiveFields(list)
    complete(Int(index), with: list, isObject: isObject)
    if isObject, types.contains(where: { $0.type != type && $0.kind.isObject && $0.name == types[Int(index)].name }) {
      report(
        .unsupported, "Two classes have the same name in archives: give one of them another with @Archivable(name:)",
        T.archiveName)
    }
    for subclass in T.archiveSubclasses { describe(subclass) }
    return wire
  }

  /// Adds a class that no declared type leads to.
  func describe(_ type: any Archivable.Type) {
    func open<T: Archivable>(_ type: T.Type) { _ = node(of: type) }
    open(type)
  }

  private func complete(_ index: Int, with list: ArchiveFieldList, isObject: Bool) {
    let name = types[index].name
    if list.isKeyed {
      types[index].kind = isObject ? .keyedObject : .keyedValue
      if !list.fields.isEmpty {
        report(.unsupported, "A hand-written class and an @Archivable class can't be each other's superclass", name)
      }
    } else if !list.cases.isEmpty {
      types[index].kind = .enumeration
    }
    if let described = list.described, described != list.type {
      report(
        .unlistedClass,
        "This class inherits its conformance: mark it @Archivable and list it in its superclass's subclasses:",
        name)
    }
    if list.superclasses.count > ArchiveLimits.classLevels {
      report(.limit, "The class has more than \(ArchiveLimits.classLevels) superclasses", name)
    }
    types[index].superclasses = list.superclasses
    types[index].fields = list.fields
    types[index].memory = list.memory
    types[index].cases = list.cases
    types[index].fallback = list.fallback
    check(list.fields.map(\.key), name)
    check(list.cases.map(\.key), name)
    for entry in list.cases { check(entry.fields.map(\.key), name) }
  }

  private func check(_ keys: [String], _ name: String) {
    var seen: Set<String> = []
    for key in keys where !seen.insert(key).inserted {
      report(.unsupported, "Two fields or cases have the key \"\(key)\": give one of them another with @Key", name)
    }
  }

  private func report(_ code: ArchiveError.Code, _ message: String, _ type: String) {
    if problem == nil { problem = ArchiveError(code, message, type: type) }
  }

  /// Decides which fields of classes are set after all objects exist, for the types from index `start` on.
  func markDeferred(from start: Int = 0) {
    for index in start..<types.count where types[index].kind == .object {
      for field in types[index].fields.indices where types[index].fields[field].deferrable {
        var visited: Set<Int32> = []
        types[index].fields[field].deferred = leadsToObjects(types[index].fields[field].node, &visited)
      }
      types[index].deferred = FieldMask(types[index].fields.map(\.deferred))
    }
  }

  private func leadsToObjects(_ node: Int32, _ visited: inout Set<Int32>) -> Bool {
    let wire = nodes[Int(node)]
    switch wire.code {
    case .optional, .array, .set: return leadsToObjects(wire.first, &visited)
    case .dictionary: return leadsToObjects(wire.first, &visited) || leadsToObjects(wire.second, &visited)
    case .named:
      guard visited.insert(wire.first).inserted else { return false }
      let entry = types[Int(wire.first)]
      // The contents of a hand-written value are unknown until it is written; it may contain an object.
      if entry.kind.isObject || entry.kind.isKeyed { return true }
      for field in entry.fields where leadsToObjects(field.node, &visited) { return true }
      for enumCase in entry.cases {
        for field in enumCase.fields where leadsToObjects(field.node, &visited) { return true }
      }
      return false
    default: return false
    }
  }

  // MARK: Asking

  package func isObject(_ node: Int32) -> Bool {
    let wire = nodes[Int(node)]
    return wire.code == .named && types[Int(wire.first)].kind.isObject
  }

  private static let shownNameBytes = 256

  /// Returns a type expression as Swift code; very long names are truncated.
  package func text(_ node: Int32, depth: Int = 0) -> String {
    guard depth < ArchiveLimits.typeDepth else { return "..." }
    let wire = nodes[Int(node)]
    switch wire.code {
    case .optional: return text(wire.first, depth: depth + 1) + "?"
    case .array: return "[" + text(wire.first, depth: depth + 1) + "]"
    case .set: return "Set<" + text(wire.first, depth: depth + 1) + ">"
    case .dictionary: return "[" + text(wire.first, depth: depth + 1) + ": " + text(wire.second, depth: depth + 1) + "]"
    case .vector:
      return
        "vector of \(wire.second) \(WireCode(rawValue: UInt8(truncatingIfNeeded: wire.first)).map { "\($0)" } ?? "?")"
    case .named:
      // The name is repeated wherever the type occurs, so an altered archive could turn it into a very long text.
      let name = types[Int(wire.first)].name
      return name.utf8.count <= Self.shownNameBytes
        ? name : String(name.unicodeScalars.prefix(Self.shownNameBytes)) + "..."
    case .later: return "newer kind of value (\(wire.first))"
    default: return "\(wire.code)"
    }
  }
}

/// Receives the fields or cases of a type, in the order in which they are written.
public final class ArchiveFieldList {
  private let schema: ArchiveSchema
  let type: ObjectIdentifier
  fileprivate(set) var fields: [FieldEntry] = []
  fileprivate(set) var cases: [CaseEntry] = []
  fileprivate(set) var isKeyed = false
  fileprivate(set) var described: ObjectIdentifier?
  fileprivate(set) var superclasses: [ClassLevel] = []
  fileprivate(set) var fallback: Int?
  /// Bytes of an object: its header, to which `field` adds the properties.
  fileprivate(set) var memory = 2 * MemoryLayout<Int>.stride

  init(schema: ArchiveSchema, type: ObjectIdentifier) {
    self.schema = schema
    self.type = type
  }

  func markKeyed() { isKeyed = true }

  /// Declares the type whose fields follow. In an object, called for each class, from the object's own class upwards;
  /// so a class that only inherits its superclass's description is detected.
  ///
  /// - Parameter type: The type, or one class of an object.
  public func describe<T: Archivable>(_ type: T.Type) {
    if described == nil {
      described = ObjectIdentifier(type)
    } else {
      superclasses.append(ClassLevel(name: T.archiveName, version: T.archiveVersion))
    }
  }

  /// Returns the name of a generic argument, as part of the name of a type.
  ///
  /// - Parameter type: The generic argument.
  /// - Returns: The argument's name in archives.
  public static func name<T: Archivable>(of type: T.Type) -> String { T.archiveName }

  /// Lists a field.
  ///
  /// - Parameters:
  ///   - key: The field's key in archives.
  ///   - type: The field's type.
  ///   - deferrable: Whether the field may be set after the object was created, like references of classes.
  public func field<T: Archivable>(_ key: String, _ type: T.Type, deferrable: Bool = false) {
    fields.append(FieldEntry(key: key, node: schema.node(of: type), deferrable: deferrable))
    memory += MemoryLayout<T>.stride
  }

  /// Lists a field whose type is inferred from a closure.
  ///
  /// - Parameters:
  ///   - key: The field's key in archives.
  ///   - deferrable: Whether the field may be set after the object was created, like references of classes.
  ///   - get: A closure that returns the property. It isn't called.
  public func field<Root, T: Archivable>(_ key: String, deferrable: Bool = false, _ get: (Root) -> T) {
    field(key, T.self, deferrable: deferrable)
  }

  /// Lists a case by its key.
  ///
  /// - Parameter key: The case's key in archives.
  public func enumCase(_ key: String) {
    cases.append(CaseEntry(key: key, fields: []))
  }

  /// Lists a case without payload by its key. For cases with a raw value there is the overload below.
  ///
  /// - Parameters:
  ///   - key: The case's key in archives.
  ///   - value: The case. Only its type matters.
  public func enumCase<T>(_ key: String, _ value: T) {
    enumCase(key)
  }

  /// Lists a case without payload that has a raw value. Archives have its key, as for every case; by the raw value, the
  /// case is found in other programs' files.
  ///
  /// - Parameters:
  ///   - key: The case's key in archives.
  ///   - value: The case.
  public func enumCase<T: RawRepresentable>(_ key: String, _ value: T) {
    cases.append(CaseEntry(key: key, fields: [], rawValue: "\(value.rawValue)"))
  }

  /// Makes the case that was added last the fallback for cases that the program doesn't know.
  public func fallbackCase() { fallback = cases.count - 1 }

  /// Adds a field to the payload of the case that was added last.
  ///
  /// - Parameters:
  ///   - key: The field's label, or its position counted from "0" if it has none.
  ///   - type: The field's type.
  public func payload<T: Archivable>(_ key: String, _ type: T.Type) {
    guard !cases.isEmpty else { return }
    cases[cases.count - 1].fields.append(FieldEntry(key: key, node: schema.node(of: type)))
  }
}
