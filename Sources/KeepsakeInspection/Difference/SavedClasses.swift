/// The classes of a file's objects, also where its values don't show them: a list may be an NSMutableArray.
///
/// Two files are compared side by side, starting at their roots; neither list nor comparison recurses.
package struct SavedClasses: Sendable {
  /// A class as the file describes it.
  package struct Name: Sendable, Hashable {
    package var name: String
    /// The classes above it, its direct superclass first; nil if the file doesn't tell them.
    package var superclasses: [String]?

    package init(_ name: String, superclasses: [String]?) { (self.name, self.superclasses) = (name, superclasses) }

    /// The classes that a value of JSON stands for.
    private static let ofJSON = [
      "NSArray": ["NSObject"], "NSDictionary": ["NSObject"], "NSString": ["NSObject"],
      "NSNumber": ["NSValue", "NSObject"], "NSNull": ["NSObject"],
    ]
    /// Those that a value of another format without classes stands for.
    private static let ofValues = [
      "NSDate": ["NSObject"], "NSData": ["NSObject"], "NSSet": ["NSObject"], "NSUUID": ["NSObject"],
      "NSURL": ["NSObject"], "NSDecimalNumber": ["NSNumber", "NSValue", "NSObject"],
    ]

    /// Whether a value of JSON shows the class.
    package var isImplied: Bool { Self.ofJSON[name].map { $0 == superclasses } ?? false }
    /// Whether a value shows the class in some format that has no classes.
    package var isOfValue: Bool { isImplied || Self.ofValues[name].map { $0 == superclasses } ?? false }
  }

  /// A value with others in it. Those of a list are without a label.
  package struct Node: Sendable {
    /// An index into `names`; nil for a value without a class.
    package var type: Int?
    /// Whether the order of what is in it has no meaning.
    package var isSet = false
    package var children: [Child] = []

    package init() {}
  }

  package struct Child: Sendable {
    /// The end of its path, such as `.name`; empty for an element of a list.
    package var label: String
    /// An index into `nodes`.
    package var node: Int

    package init(_ label: String, _ node: Int) { (self.label, self.node) = (label, node) }
  }

  /// One object whose class its value alone doesn't show.
  package struct Entry: Sendable, Equatable {
    package var path: String
    package var name: Name
  }

  /// The number of every value that contains no others and has no class.
  package static let leaf = 0

  package private(set) var names: [Name] = []
  package var nodes = [Node()]
  /// An index into `nodes`.
  package var root = leaf
  private var numbers: [Name: Int] = [:]

  package init() {}

  /// Adds a value, and returns its number.
  package mutating func add() -> Int {
    nodes.append(Node())
    return nodes.count - 1
  }

  /// Returns the number of a class.
  package mutating func number(of name: Name) -> Int {
    if let number = numbers[name] { return number }
    numbers[name] = names.count
    names.append(name)
    return names.count - 1
  }

  /// Returns the label of a field.
  package static func label(_ key: String) -> String { "." + PrintableText.name(key) }

  func name(_ node: Int) -> Name? { nodes[node].type.map { names[$0] } }

  /// Returns the objects whose class a value of JSON doesn't show, each once, by the first path that leads to it.
  package var entries: [Entry] {
    var entries: [Entry] = []
    var met: Set<Int> = [Self.leaf]
    var work = [(node: root, path: "")]
    while let (node, path) = work.popLast() {
      guard met.insert(node).inserted else { continue }
      if let name = name(node), !name.isImplied { entries.append(Entry(path: Self.shown(path), name: name)) }
      for (index, child) in nodes[node].children.enumerated().reversed() where !met.contains(child.node) {
        work.append((child.node, Self.path(path, child.label, index)))
      }
    }
    return entries
  }

  /// The number of characters of a path; of a long one the end is kept, which is the most informative part.
  private static let pathCharacters = 200

  static func path(_ path: String, _ label: String, _ index: Int) -> String {
    let path = path + (label.isEmpty ? "[\(index)]" : label)
    return path.utf8.count > pathCharacters ? "…" + String(path.suffix(pathCharacters - 1)) : path
  }

  static func shown(_ path: String) -> String {
    path.isEmpty ? "root" : path.hasPrefix(".") ? String(path.dropFirst()) : path
  }
}

extension ArchiveInspection {
  /// The classes of the objects, as far as the file tells them.
  package var classes: SavedClasses {
    if let savedClasses { return savedClasses() }
    var classes = SavedClasses()
    let places = objects.map { object -> Int in
      guard let object else { return SavedClasses.leaf }
      let node = classes.add()
      classes.nodes[node].type = classes.number(of: .init(types[object.type].name, superclasses: nil))
      return node
    }
    var work: [(node: Int, value: ArchiveValue)] = []
    func node(_ value: ArchiveValue) -> Int {
      switch value {
      case .reference(let number): return places.indices.contains(number) ? places[number] : SavedClasses.leaf
      case .structure, .enumeration, .dictionary, .array, .vector, .set:
        let node = classes.add()
        work.append((node, value))
        return node
      default: return SavedClasses.leaf
      }
    }
    func children(_ fields: [ArchiveValue.Field]) -> [SavedClasses.Child] {
      fields.map { .init(SavedClasses.label($0.key), node($0.value)) }
    }
    classes.root = node(root)
    for (number, object) in objects.enumerated() {
      guard let object else { continue }
      let fields = children(object.fields)
      classes.nodes[places[number]].children = fields
    }
    while let (place, value) = work.popLast() {
      var below: [SavedClasses.Child] = []
      switch value {
      case .structure(_, let fields), .enumeration(_, _, let fields): below = children(fields)
      case .dictionary(let pairs):
        below = pairs.enumerated().map { index, pair in
          if case .string(let key) = pair.key { return .init(SavedClasses.label(key), node(pair.value)) }
          if case .integer(let key) = pair.key { return .init("[\(key)]", node(pair.value)) }
          return .init("", node(pair.value))
        }
      case .array(let values), .vector(let values), .set(let values): below = values.map { .init("", node($0)) }
      default: break
      }
      if case .set = value { classes.nodes[place].isSet = true }
      classes.nodes[place].children = below
    }
    return classes
  }
}
