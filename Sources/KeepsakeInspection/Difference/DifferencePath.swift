import KeepsakeArchive

/// The paths of values in both archives. Paths share their beginnings.
struct DifferencePath {
  enum Step {
    case root
    /// An object at which the path starts again.
    case object(String)
    case field(String)
    case element(old: Int?, new: Int?)
    /// A dictionary's key as text.
    case key(String)
  }

  private struct Node {
    let parent: Int
    let step: Step
    /// The position among its siblings.
    let order: Int
    let length: Int
  }

  /// A path that gets longer starts again at the next object; that of a linked list would otherwise get as long as the
  /// list.
  static let longest = 24
  static let root = 0

  private var nodes = [Node(parent: -1, step: .root, order: 0, length: 0)]
  private var starts = 0

  mutating func append(_ step: Step, order: Int, to parent: Int) -> Int {
    nodes.append(Node(parent: parent, step: step, order: order, length: nodes[parent].length + 1))
    return nodes.count - 1
  }

  /// Adds a path that starts at an object, sorted behind all earlier ones.
  mutating func start(at object: String) -> Int {
    starts += 1
    nodes.append(Node(parent: Self.root, step: .object(object), order: Int.max / 2 + starts, length: 1))
    return nodes.count - 1
  }

  func isLong(_ path: Int) -> Bool { nodes[path].length >= Self.longest }

  private func steps(_ path: Int) -> [Node] {
    var steps: [Node] = []
    var node = path
    while node >= 0 {
      steps.append(nodes[node])
      node = nodes[node].parent
    }
    return steps.reversed()
  }

  /// Returns a sort key that puts changes in the order of the values in the archives.
  func order(_ path: Int) -> [Int] { steps(path).map(\.order) }

  func text(_ path: Int) -> String { render(path, isPattern: false) }

  /// Returns the path without positions and keys.
  func pattern(_ path: Int) -> String { render(path, isPattern: true) }

  private func render(_ path: Int, isPattern: Bool) -> String {
    var text = ""
    for node in steps(path) {
      switch node.step {
      case .root: continue
      case .object(let caption):
        // "#7 Boss" without its number.
        text = isPattern ? String(caption.drop { $0 != " " }.dropFirst()) : caption
      case .field(let key): text += (text.isEmpty ? "" : ".") + PrintableText.name(key)
      case .element(let old, let new):
        if isPattern {
          text += "[]"
        } else if let old, let new, old != new {
          text += "[\(old)->\(new)]"
        } else {
          text += "[\(new ?? old ?? 0)]"
        }
      case .key(let key): text += isPattern ? "[]" : "[\(key)]"
      }
    }
    return text.isEmpty ? "root" : text
  }
}
