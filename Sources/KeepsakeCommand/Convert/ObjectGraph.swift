#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeInterchange

/// The contents of a file of any format, as values of an archive with the objects that they refer to.
struct ObjectGraph: Equatable {
  struct Class: Equatable {
    var name: String
    /// The class and its superclasses; empty if the file doesn't contain them.
    var ancestry: [String] = []
  }
  struct Object: Equatable {
    /// An index into `classes`.
    var type: Int
    var fields: [ArchiveValue.Field]
  }

  /// The types of structs and objects.
  var classes: [Class]
  var root: ArchiveValue
  /// The objects by number; nil for one that was only referred to weakly.
  var objects: [Object?] = []
  /// In a keyed archive: the values at its top, in the order of their keys. The root is the only one there, or has all
  /// of them as fields.
  var top: [ArchiveValue.Field] = []
  /// The index of the type that represents UIDs, the numbers by which a keyed archive names objects.
  var uidType: Int?

  /// The type of dictionaries in property lists, JSON and keyed archives: structs of a type without a name.
  static let plain = 0
  private static let uid = 1
  private static let uidKey = "number"

  /// The types of a file without types.
  static let plainClasses = [Class(name: ""), Class(name: "UID")]

  init(_ root: ArchiveValue) {
    classes = Self.plainClasses
    self.root = root
    uidType = Self.uid
  }

  init(_ archive: ArchiveInspection) {
    classes = archive.types.map { Class(name: $0.name) }
    root = archive.root
    objects = archive.objects.map { $0.map { Object(type: $0.type, fields: $0.fields) } }
  }

  init(_ tree: KeyedTree) {
    let offset = Self.plainClasses.count
    classes = Self.plainClasses + tree.classes.map { Class(name: $0.name, ancestry: $0.ancestry) }
    uidType = Self.uid
    top = tree.top.sorted { $0.key < $1.key }.map { .init(key: $0.key, value: Self.moved($0.value, offset)) }
    objects = tree.objects.map { object in
      Object(type: object.type + offset, fields: Self.named(object.fields, offset))
    }
    root = Self.root(top)
  }

  static func root(_ top: [ArchiveValue.Field]) -> ArchiveValue {
    if let only = top.first, top.count == 1 { return only.value }
    return .structure(type: plain, top)
  }

  /// Shifts the types behind those of every file, and turns dictionaries with text keys into structs without a name.
  /// Recurses once per level; the tree's builder allows a few dozen.
  private static func moved(_ value: ArchiveValue, _ offset: Int) -> ArchiveValue {
    if let (mark, inner, _) = ArchiveMark.unmarked(value) { return ArchiveMark.marked(mark, moved(inner, offset)) }
    return switch value {
    case .structure(let type, let fields): .structure(type: type + offset, named(fields, offset))
    case .array(let values): .array(values.map { moved($0, offset) })
    case .set(let values): .set(values.map { moved($0, offset) })
    case .dictionary(let pairs): byName(pairs.map { .init(key: moved($0.key, offset), value: moved($0.value, offset)) })
    // Marked as in an archive, so that a decimal number without a fraction isn't taken for an integer. (An integer of
    // 128 bits, which no archiver writes, becomes a decimal number here.)
    case .decimal: ArchiveMark.marked(.decimal, value)
    default: value
    }
  }

  private static func named(_ fields: [ArchiveValue.Field], _ offset: Int) -> [ArchiveValue.Field] {
    fields.map { .init(key: KeyedObjectTable.shown($0.key), value: moved($0.value, offset)) }
  }

  static func byName(_ pairs: [ArchiveValue.Pair]) -> ArchiveValue {
    let fields = pairs.compactMap { pair -> ArchiveValue.Field? in
      if case .string(let key) = pair.key { .init(key: key, value: pair.value) } else { nil }
    }
    return fields.count == pairs.count ? .structure(type: plain, fields) : .dictionary(pairs)
  }

  static func uid(_ number: UInt64) -> ArchiveValue {
    .structure(type: uid, [.init(key: uidKey, value: Int64(exactly: number).map { .integer($0) } ?? .unsigned(number))])
  }

  /// Returns the number of a UID; nil for any other value.
  func uid(_ value: ArchiveValue) -> UInt64? {
    guard case .structure(let type, let fields) = value, type == uidType else { return nil }
    switch fields.first?.value {
    case .integer(let number): return UInt64(exactly: number)
    case .unsigned(let number): return number
    default: return nil
    }
  }
}

extension ObjectGraph {
  /// Creates a graph of a property list's values. Recurses once per level; its reader allows a few hundred.
  init(_ list: PropertyList) { self.init(Self.value(of: list)) }

  static func value(of list: PropertyList) -> ArchiveValue {
    switch list {
    case .null: .none
    case .bool(let value): .bool(value)
    case .integer(let value): integer(value)
    case .number(let value): .number(value)
    case .float(let value): ArchiveMark.marked(.float, .number(Double(value)))
    case .string(let value): .string(value)
    case .data(let value): .data(value)
    case .date(let value): .date(value)
    case .uid(let value): uid(value)
    case .array(let elements): .array(elements.map(value(of:)))
    case .set(let elements): .set(elements.map(value(of:)))
    case .dictionary(let entries):
      .structure(type: plain, entries.map { .init(key: $0.key, value: value(of: $0.value)) })
    }
  }

  static func integer(_ value: Int128) -> ArchiveValue {
    Int64(exactly: value).map { .integer($0) } ?? UInt64(exactly: value).map { .unsigned($0) } ?? .decimal("\(value)")
  }

  // MARK: Showing

  /// Returns the graph in the form in which archives are shown and compared, with the files in its data opened.
  func inspection(of format: String, byteCount: Int) -> ArchiveInspection {
    NestedFiles.opened(self, byteCount: byteCount).shown(as: format, byteCount)
  }

  private func shown(as format: String, _ byteCount: Int) -> ArchiveInspection {
    var counts = [Int](repeating: 0, count: classes.count)
    for object in objects { if let object { counts[object.type] += 1 } }
    // UIDs are shown in place, by their type's name, and aren't objects.
    let shownClasses = zip(classes, counts).map { (name: $0.name, count: $1) }
    return ArchiveInspection(
      foreign: format, byteCount: byteCount, classes: shownClasses, root: Self.shown(root),
      objects: objects.map { object in
        object.map { ($0.type, $0.fields.map { .init(key: $0.key, value: Self.shown($0.value)) }) }
      })
  }

  /// Removes the marks of numbers.
  private static func shown(_ value: ArchiveValue) -> ArchiveValue {
    if let (_, inner, _) = ArchiveMark.unmarked(value) { return shown(inner) }
    switch value {
    case .structure(let type, let fields):
      return .structure(type: type, fields.map { .init(key: $0.key, value: shown($0.value)) })
    case .array(let values): return .array(values.map(shown))
    case .set(let values): return .set(values.map(shown))
    case .dictionary(let pairs): return .dictionary(pairs.map { .init(key: shown($0.key), value: shown($0.value)) })
    default: return value
    }
  }
}
#endif
