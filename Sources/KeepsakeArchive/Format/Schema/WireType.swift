/// The code of a saved value's layout, one byte of the schema.
@usableFromInline package enum WireCode: UInt8, Sendable {
  case bool = 1
  case int8 = 2
  case int16 = 3
  case int32 = 4
  case int64 = 5
  case uint8 = 6
  case uint16 = 7
  case uint32 = 8
  case uint64 = 9
  case float = 10
  case double = 11
  case string = 12
  case data = 13
  case date = 14
  case uuid = 15
  case url = 16
  case int128 = 17
  case uint128 = 18
  case decimal = 19
  /// A `Codable` value, as a self-describing tree.
  case coded = 24
  case optional = 32
  case array = 33
  case set = 34
  case dictionary = 35
  case vector = 36
  case named = 48
  /// Any code in `laterCodes`; the node's `first` is that code.
  case later = 64

  /// Codes for scalars of later versions. They are written as a length and as many bytes, so that a program that
  /// doesn't know them can skip them.
  package static let laterCodes: ClosedRange<UInt8> = 64...79

  package var isSigned: Bool { rawValue >= 2 && rawValue <= 5 }
  package var isInteger: Bool { rawValue >= 2 && rawValue <= 9 }
  /// Bytes of one scalar in a block or vector; 0 if the type isn't a scalar.
  @usableFromInline package var scalarBytes: Int {
    switch self {
    case .bool, .int8, .uint8: 1
    case .int16, .uint16: 2
    case .int32, .uint32, .float: 4
    case .int64, .uint64, .double: 8
    default: 0
    }
  }
}

/// One node of a type expression: `first` and `second` are nodes (optional, array, set, dictionary), a type's index
/// (named), or a scalar's code and a count (vector).
@usableFromInline package struct WireNode: Equatable, Sendable {
  @usableFromInline package var code: WireCode
  @usableFromInline package var first: Int32
  @usableFromInline package var second: Int32

  @usableFromInline package init(_ code: WireCode, _ first: Int32 = 0, _ second: Int32 = 0) {
    self.code = code
    self.first = first
    self.second = second
  }
}

/// The kind of a described type.
package enum TypeKind: UInt8, Sendable {
  case structure = 1
  case enumeration = 2
  case object = 3
  /// A hand-written value, in which each field has its key.
  case keyedValue = 4
  /// A hand-written class.
  case keyedObject = 5

  package var isObject: Bool { self == .object || self == .keyedObject }
  package var isKeyed: Bool { self == .keyedValue || self == .keyedObject }
}

package struct FieldEntry: Equatable {
  package var key: String
  package var node: Int32
  /// Whether the field may be set after all objects exist.
  package var deferrable: Bool
  /// Whether the field belongs to the references section, because it is deferrable and leads to objects.
  package var deferred: Bool

  package init(key: String, node: Int32, deferrable: Bool = false, deferred: Bool = false) {
    (self.key, self.node, self.deferrable, self.deferred) = (key, node, deferrable, deferred)
  }
}

package struct CaseEntry: Equatable {
  package var key: String
  package var fields: [FieldEntry]
  /// For a case of the program with a raw value: its text. Not written: it is only for finding the case by what another
  /// program stored.
  var rawValue: String?

  package init(key: String, fields: [FieldEntry], rawValue: String? = nil) {
    (self.key, self.fields, self.rawValue) = (key, fields, rawValue)
  }
}

/// A superclass. An object has the fields of all of its superclasses, and each of them has its own version.
package struct ClassLevel: Equatable, Sendable {
  package let name: String
  package let version: Int

  package init(name: String, version: Int) { (self.name, self.version) = (name, version) }
}

package struct TypeEntry {
  package var kind: TypeKind
  package var name: String
  package var version: Int
  /// For a class: its superclasses, the direct one first.
  package var superclasses: [ClassLevel] = []
  package var fields: [FieldEntry] = []
  package var cases: [CaseEntry] = []
  /// The fallback for cases that the program doesn't know. Not written, because only the reader uses it.
  var fallback: Int?
  /// The type expression that is just this type.
  var node: Int32 = 0
  /// The program's type; nil in a schema that was read from an archive.
  var type: (any Archivable.Type)?
  /// For a class of the program: the codec of its objects.
  var codec: ObjectCodec?
  /// Bytes of the program's object or value, as far as its saved properties show.
  var memory = 0
  /// Which fields are deferred, once that has been decided.
  var deferred = FieldMask([])

  package init(kind: TypeKind, name: String, version: Int) {
    (self.kind, self.name, self.version) = (kind, name, version)
  }

  /// The numbers of an object's fields in the two sections. A hand-written object ends with a byte in each.
  var objectFieldCounts: (values: Int, references: Int) {
    if kind.isKeyed { return (1, 1) }
    let references = fields.count { $0.deferred }
    return (fields.count - references, references)
  }
}
