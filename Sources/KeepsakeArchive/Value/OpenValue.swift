/// A value that has been read in part.
struct OpenValue {
  enum Kind {
    case optional, array, set, dictionary
    /// A struct, an object or, if it has a name, an enum case.
    case fields
    case keyed
  }

  var kind: Kind
  /// The offset of its first byte.
  let start: Int
  /// The type of elements, or of keys and of their values.
  var first: Int32 = 0
  var second: Int32 = 0
  /// The number of elements or pairs left to read.
  var remaining = 0
  /// For a dictionary: whether the key has been read.
  var isAtValue = false
  /// Nil for an object, which is counted when its run is read.
  var type: Int?
  /// For an enum, the case; for a hand-written value, the key of the value that is being read.
  var name: String?
  /// For a hand-written value: the offset at which the value that is being read must end.
  var end = 0
  var entries: [FieldEntry] = []
  var next = 0
  var fields: [ArchiveValue.Field] = []
  var elements: [ArchiveValue] = []
  var pairs: [ArchiveValue.Pair] = []
  /// For a dictionary, the key of the value that is being read; for an optional, its content.
  var key = ArchiveValue.none

  init(_ kind: Kind, start: Int) {
    self.kind = kind
    self.start = start
  }

  mutating func reserve(_ count: Int) {
    switch kind {
    case .array, .set: elements.reserveCapacity(count)
    case .dictionary: pairs.reserveCapacity(count)
    case .optional, .fields, .keyed: break
    }
  }
}
