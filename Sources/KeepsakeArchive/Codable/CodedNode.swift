/// A value of a coded tree while it is made.
enum CodedNode {
  case leaf(CodedLeaf)
  case list(CodedList)
  case object(CodedFields)
  /// What an encoder for a superclass will have written by the end.
  case later(CodedEncoder)
  /// Elements without an order of their own.
  case set([CodedNode])
  /// The pairs of a dictionary whose keys are no strings.
  case pairs([(key: CodedNode, value: CodedNode)])
}

/// Shared by the containers that fill it.
final class CodedList {
  var nodes: [CodedNode] = []
}

/// By the numbers that the keys have while the tree is made. Shared by the containers that fill it.
final class CodedFields {
  var nodes: [Int: CodedNode] = [:]
}

/// The keys of a tree, numbered as they come: equal only if their bytes are, which is not so for strings.
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

  mutating func number(_ key: String) -> Int {
    if let known = numbers[Key(text: key)] { return known }
    numbers[Key(text: key)] = texts.count
    texts.append(key)
    return texts.count - 1
  }

  /// The keys in the order of their bytes, and for each number its place in that order.
  func sorted() -> (texts: [String], places: [Int]) {
    let order = texts.indices.sorted { texts[$0].utf8.lexicographicallyPrecedes(texts[$1].utf8) }
    var places = [Int](repeating: 0, count: texts.count)
    for (place, number) in order.enumerated() { places[number] = place }
    return (order.map { texts[$0] }, places)
  }
}

/// Turns nodes into bytes, in an order that depends on nothing but the values. Calls itself as deep as the nodes are nested, which
/// the encoder has limited.
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
      begin(.object, count: fields.nodes.count)
      let ordered = fields.nodes.map { (place: places[$0.key], node: $0.value) }.sorted { $0.place < $1.place }
      for field in ordered {
        Varint.append(UInt64(field.place), to: &bytes)
        try write(field.node)
      }
    case .set(let elements):
      begin(.array, count: elements.count)
      let pieces = try elements.map { try apart($0) }
      for piece in pieces.sorted(by: { $0.lexicographicallyPrecedes($1) }) { bytes += piece }
    case .pairs(let pairs):
      begin(.array, count: pairs.count * 2)
      // Keys that are encoded alike are put in the order of their values.
      let pieces = try pairs.map { (try apart($0.key), try apart($0.value)) }
      let sorted = pieces.sorted { $0.0 == $1.0 ? $0.1.lexicographicallyPrecedes($1.1) : $0.0.lexicographicallyPrecedes($1.0) }
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
