#if Cloud
import KeepsakeInspection
import KeepsakeInterchange

/// Reads the classes of a keyed archive's objects, with the paths by which its values are shown.
struct KeyedClasses {
  private let objects: [PropertyList]
  private var classes = SavedClasses()
  /// The nodes of objects, by their UIDs.
  private var places: [UInt64: Int] = [:]
  /// Nodes whose contents are still to be read: one after the other, so that a long chain doesn't use the stack.
  private var work: [(node: Int, value: PropertyList)] = []

  private static let classKey = "$class"
  private static let keysKey = "NS.keys"
  private static let valuesKey = "NS.objects"

  static func read(_ list: PropertyList) -> SavedClasses {
    var reader = KeyedClasses(objects: list["$objects"]?.array ?? [])
    guard case .dictionary(let top)? = list["$top"] else { return reader.classes }
    if let only = top.first, top.count == 1 {
      reader.classes.root = reader.node(only.value)
    } else {
      let root = reader.classes.add()
      reader.classes.root = root
      let children = top.map { SavedClasses.Child(SavedClasses.label($0.key), reader.node($0.value)) }
      reader.classes.nodes[root].children = children
    }
    while let (node, value) = reader.work.popLast() { reader.fill(node, value) }
    return reader.classes
  }

  /// Returns the class of an object; nil for a value without one.
  static func name(of value: PropertyList, in objects: [PropertyList]) -> SavedClasses.Name? {
    guard let uid = value[classKey]?.uid, uid < UInt64(objects.count) else { return nil }
    let described = objects[Int(uid)]
    guard let name = described["$classname"]?.string else { return nil }
    let ancestry = described["$classes"]?.array?.compactMap(\.string) ?? []
    return SavedClasses.Name(name, superclasses: ancestry.first == name ? Array(ancestry.dropFirst()) : ancestry)
  }

  private init(objects: [PropertyList]) { self.objects = objects }

  private func resolved(_ value: PropertyList) -> PropertyList {
    guard let uid = value.uid else { return value }
    return uid == 0 || uid >= UInt64(objects.count) ? .null : objects[Int(uid)]
  }

  /// Returns the node of a value; that of an object is the same for each reference to it.
  private mutating func node(_ given: PropertyList) -> Int {
    if let uid = given.uid, let known = places[uid] { return known }
    let value = resolved(given)
    switch value {
    case .dictionary, .array, .set:
      let node = classes.add()
      if let uid = given.uid { places[uid] = node }
      work.append((node, value))
      return node
    default: return SavedClasses.leaf
    }
  }

  private mutating func fill(_ node: Int, _ value: PropertyList) {
    let name = Self.name(of: value, in: objects)
    if let name { classes.nodes[node].type = classes.number(of: name) }
    let children: [SavedClasses.Child]
    switch value {
    case .array(let elements), .set(let elements): children = elements.map { .init("", self.node($0)) }
    case .dictionary(let entries): children = self.children(of: value, entries)
    default: children = []
    }
    classes.nodes[node].children = children
    if case .set = value { classes.nodes[node].isSet = true }
    if let name, ([name.name] + (name.superclasses ?? [])).contains("NSSet") { classes.nodes[node].isSet = true }
  }

  private mutating func children(
    of value: PropertyList, _ entries: [PropertyList.Entry]
  ) -> [SavedClasses.Child] {
    var children: [SavedClasses.Child] = []
    let isObject = value[Self.classKey] != nil
    let (keys, values) = (value[Self.keysKey]?.array, value[Self.valuesKey]?.array)
    for entry in entries where entry.key != Self.classKey {
      if isObject, entry.key == Self.keysKey, keys?.count == values?.count { continue }
      guard isObject, entry.key == Self.valuesKey, let values else {
        children.append(.init(SavedClasses.label(KeyedObjectTable.shown(entry.key)), node(entry.value)))
        continue
      }
      guard let keys, keys.count == values.count else {
        children += values.map { SavedClasses.Child("", node($0)) }
        continue
      }
      for (key, element) in zip(keys, values) {
        switch resolved(key) {
        case .string(let text): children.append(.init(SavedClasses.label(text), node(element)))
        case .integer(let number): children.append(.init("[\(number)]", node(element)))
        default: children += [.init("", node(key)), .init("", node(element))]
        }
      }
    }
    return children
  }
}
#endif
