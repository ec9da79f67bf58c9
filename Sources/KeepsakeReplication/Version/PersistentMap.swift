/// A dictionary whose copies share what they have in common.
///
/// A copy costs nothing, and changing one copies some short lists, however many elements there are and however many
/// copies exist; changing a copy of a `Dictionary` copies all of it. The elements are in the leaves of a tree, which
/// branches by the bits of their hashes.
struct PersistentMap<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  typealias Element = (key: Key, value: Value)

  /// A leaf, with elements, or a branch, with `width` children.
  final class Node: Sendable {
    let elements: [Element]
    let children: [Node]

    fileprivate init(elements: [Element] = [], children: [Node] = []) {
      (self.elements, self.children) = (elements, children)
    }
  }

  private static var bits: Int { 4 }
  private static var width: Int { 1 << bits }
  /// A leaf with more elements becomes a branch, unless all bits of the hash are used up.
  private static var maximumElements: Int { 8 }

  private(set) var root = Node()

  subscript(key: Key) -> Value? {
    get {
      var node = root
      var hash = UInt(bitPattern: key.hashValue)
      while !node.children.isEmpty {
        node = node.children[Self.index(hash)]
        hash >>= Self.bits
      }
      return node.elements.first { $0.key == key }?.value
    }
    set { root = Self.node(root, with: newValue, for: key, UInt(bitPattern: key.hashValue), depth: 0) }
  }

  /// - Parameter hash: What the levels above have left of the key's hash.
  private static func node(_ node: Node, with value: Value?, for key: Key, _ hash: UInt, depth: Int) -> Node {
    guard node.children.isEmpty else {
      var children = node.children
      let index = index(hash)
      children[index] = Self.node(children[index], with: value, for: key, hash >> bits, depth: depth + 1)
      return Node(children: children)
    }
    var elements = node.elements.filter { $0.key != key }
    if let value { elements.append((key, value)) }
    return leaf(elements, depth: depth)
  }

  private static func leaf(_ elements: [Element], depth: Int) -> Node {
    guard elements.count > maximumElements, depth * bits < UInt.bitWidth else { return Node(elements: elements) }
    var parts = [[Element]](repeating: [], count: width)
    for element in elements {
      parts[index(UInt(bitPattern: element.key.hashValue) >> (depth * bits))].append(element)
    }
    return Node(children: parts.map { leaf($0, depth: depth + 1) })
  }

  private static func index(_ hash: UInt) -> Int { Int(hash & UInt(width - 1)) }
}
