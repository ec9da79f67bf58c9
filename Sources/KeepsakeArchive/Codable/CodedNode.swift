/// A value of a coded tree while the tree is created.
enum CodedNode {
  case leaf(CodedLeaf)
  case list(CodedList)
  case object(CodedFields)
  /// The result of a superclass's encoder, read when encoding ends.
  case later(CodedEncoder)
  /// Elements without a defined order.
  case set([CodedNode])
  /// The pairs of a dictionary whose keys aren't strings.
  case pairs([(key: CodedNode, value: CodedNode)])
}

/// The nodes of a list. Shared by the containers that fill it, on one thread; none of them exposes the content while it
/// changes, so it needs no run-time exclusivity checks.
final class CodedList {
  @exclusivity(unchecked) var nodes: [CodedNode] = []
}

/// The fields of an object, by the numbers that the keys have while the tree is created. Shared like a list.
final class CodedFields {
  @exclusivity(unchecked) private(set) var fields: [(key: Int, node: CodedNode)] = []
  /// The index of each key, if there are too many fields for a linear search.
  @exclusivity(unchecked) private var places: [Int: Int] = [:]
  private static let few = 16

  func node(_ key: Int) -> CodedNode? { place(key).map { fields[$0].node } }

  func set(_ node: CodedNode, _ key: Int) {
    if let place = place(key) {
      fields[place].node = node
      return
    }
    fields.append((key, node))
    if fields.count == Self.few {
      for (place, field) in fields.enumerated() { places[field.key] = place }
    } else if fields.count > Self.few {
      places[key] = fields.count - 1
    }
  }

  // Most types have a few fields. Reserving space for them is cheaper than growing step by step.
  init() { fields.reserveCapacity(8) }

  private func place(_ key: Int) -> Int? {
    fields.count < Self.few ? fields.firstIndex { $0.key == key } : places[key]
  }
}

/// The keys of a tree, numbered in the order of appearance. Two keys are equal only if their bytes are, unlike strings.
struct CodedKeys {
  private struct Key: Hashable {
    var text: String

    static func == (a: Key, b: Key) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

    func hash(into hasher: inout Hasher) {
      var copy = text
      copy.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
  }

  private var numbers: [Key: Int] = [:]
  private var texts: [String] = []
  /// For each key, the key that followed it the last time: values of one type use their keys in the same order.
  private var followers: [Int] = []
  private var last = 0

  mutating func number(_ key: String) -> Int {
    if !texts.isEmpty {
      let guess = followers[last]
      if texts[guess].utf8.elementsEqual(key.utf8) {
        last = guess
        return guess
      }
    }
    let number = numbers[Key(text: key)] ?? texts.count
    if number == texts.count {
      numbers[Key(text: key)] = number
      texts.append(key)
      followers.append(0)
    }
    followers[last] = number
    last = number
    return number
  }

  /// Returns the keys in the order of their bytes, and for each number its position in that order.
  func sorted() -> (texts: [String], places: [Int]) {
    let order = texts.indices.sorted { texts[$0].utf8.lexicographicallyPrecedes(texts[$1].utf8) }
    var places = [Int](repeating: 0, count: texts.count)
    for (place, number) in order.enumerated() { places[number] = place }
    return (order.map { texts[$0] }, places)
  }
}

/// Turns nodes into bytes, in an order that depends only on the values. Recursive; the encoder has limited the nesting.
struct CodedTreeWriter {
  private let places: [Int]
  private var bytes: [UInt8]

  static func bytes(of root: CodedNode, keys: CodedKeys) throws -> [UInt8] {
    let (texts, places) = keys.sorted()
    var head: [UInt8] = []
    Varint.append(UInt64(texts.count), to: &head)
    for text in texts { Varint.append(text, to: &head) }
    var writer = CodedTreeWriter(places: places, bytes: head)
    try writer.write(root)
    return writer.bytes
  }

  private mutating func write(_ node: CodedNode) throws {
    switch node {
    case .leaf(let leaf): try leaf.append(to: &bytes)
    case .later(let encoder): try write(encoder.result)
    case .list(let list):
      begin(.array, count: list.nodes.count)
      for element in list.nodes { try write(element) }
    case .object(let fields):
      begin(.object, count: fields.fields.count)
      // Position and index in one number: sorting integers, which need no reference counting, is much faster.
      let ordered = fields.fields.indices.map { UInt64(places[fields.fields[$0].key]) << 32 | UInt64($0) }.sorted()
      for field in ordered {
        Varint.append(field >> 32, to: &bytes)
        try write(fields.fields[Int(field & 0xFFFF_FFFF)].node)
      }
    case .set(let elements):
      begin(.array, count: elements.count)
      let pieces = try elements.map { try apart($0) }
      for piece in pieces.sorted(by: { $0.lexicographicallyPrecedes($1) }) { bytes += piece }
    case .pairs(let pairs):
      begin(.array, count: pairs.count * 2)
      // Pairs whose keys have equal bytes are ordered by their values.
      let pieces = try pairs.map { (try apart($0.key), try apart($0.value)) }
      let sorted = pieces.sorted {
        $0.0 == $1.0 ? $0.1.lexicographicallyPrecedes($1.1) : $0.0.lexicographicallyPrecedes($1.0)
      }
      for (key, value) in sorted { bytes += key + value }
    }
  }

  private mutating func begin(_ tag: CodedTag, count: Int) {
    bytes.append(tag.rawValue)
    Varint.append(UInt64(count), to: &bytes)
  }

  private func apart(_ node: CodedNode) throws -> [UInt8] {
    var writer = CodedTreeWriter(places: places, bytes: [])
    try writer.write(node)
    return writer.bytes
  }
}
