import Foundation
import KeepsakeArchive

/// What altered keyed archives are made into. The seeds' classes are called A and B.
enum InterchangeTypes {
  @Archivable(subclasses: [Special.self]) class Node {
    var name = ""
    var next: Node?
    var others: [Node] = []
    weak var back: Node?
    var values: [String: Int] = [:]
    var part: Part?
    init() {}

    func didDecode(context: Any?) throws { made.append(self) }
    func sever() { (next, others, part) = (nil, [], nil) }
  }

  @Archivable final class Special: Node {
    var kind = Kind.one
    var tags: Set<String> = []
    var bytes: [UInt8] = []

    override func sever() {
      super.sever()
      kind = .one
    }
  }

  @Archivable struct Part {
    var number = 0.5
    var small: Int8?
    var point = SIMD2<Float>()
    var inner: [Part] = []
    var when: Date?
    var range = 0..<0
    var id: UUID?
    var gold: Decimal = 0
    var rows = IndexSet()
    var nodes: [Node] = []
  }

  @Archivable enum Kind {
    case one
    case two(count: Int, note: String?)
    case wrapped(Node)
    @Fallback case other(String)
  }

  /// All that was decoded. Circles of objects would otherwise never be freed.
  nonisolated(unsafe) static var made: [Node] = []

  static func sever() {
    for node in made { node.sever() }
    made = []
  }

  static var classes: [String: any Archivable.Type] { ["A": Special.self, "B": Node.self, "Part": Part.self] }
}
