/// A value of which a part has been read.
struct OpenValue {
  enum Kind {
    case optional, array, set, dictionary
    /// A struct, an object, or, if it has a name, an enum case.
    case fields
    case keyed
  }

  var kind: Kind
  /// Where its bytes begin.
  let start: Int
  /// The type of elements, or of keys, and of the values to them.
  var first: Int32 = 0
  var second: Int32 = 0
  /// Elements or pairs still to come.
  var remaining = 0
  /// Of a dictionary: the key has been read.
  var isAtValue = false
  /// Nil for an object, which is counted where its run is read.
  var type: Int?
  /// Of an enum: the case. Of a hand-written value: the key of what is read.
  var name: String?
  /// Of a hand-written value: where what is read must end.
  var end = 0
  var entries: [FieldEntry] = []
  var next = 0
  var fields: [ArchiveValue.Field] = []
  var elements: [ArchiveValue] = []
  var pairs: [ArchiveValue.Pair] = []
  /// Of a dictionary: the key to the value that is read. Of an optional: what is in it.
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
