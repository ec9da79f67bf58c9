import Foundation
public import KeepsakeArchive
import Observation
import Testing

// Declarations of the kinds that games have. That they compile is most of the test.

@available(macOS 14, iOS 17, *)
@Observable @Archivable final class Watched {
  var points = 0
  private(set) var names: [String] = []
  var parent: Watched?
  @ObservationIgnored @Unsaved var cache: [Int] = []
  init() {}
  func add(_ name: String) { names.append(name) }
}

@Archivable class Sprite: NSObject {
  var texture: String
  let layer: Int
  @Unsaved private var loads = 0
  var alpha: Double = 1 { didSet { loads += 1 } }
  var twice: Double { alpha * 2 }
  static let shared = 3
  @Unsaved lazy var size: Int = texture.count

  init(texture: String, layer: Int) {
    self.texture = texture
    self.layer = layer
  }
}

@MainActor @Archivable final class Scene {
  var title = "intro"
  var next: Scene?
}

@MainActor @Archivable struct HUD { var lives = 3, ammo: [String: Int] = ["gun": 6] }

@Archivable public struct PublicSave: Sendable, Identifiable, Codable, Hashable {
  public let id: Int
  public var a = 1, b: String, c: Double?
  public init(id: Int, b: String) { (self.id, self.b) = (id, b) }
}

@Archivable open class PublicBase { public init() {} }
@Archivable public final class PublicSub: PublicBase {
  public var x = 4
  public var `default` = "d"
}

@Archivable struct Stack<Element: Hashable> {
  fileprivate var storage: Set<Element> = []
  var top: Element?
}

@Archivable final class Cell<Value: Archivable> {
  var value: Value
  var next: Cell<Value>?
  init(_ value: Value) { self.value = value }
}

@Archivable enum Tree<Leaf> {
  case leaf(Leaf)
  indirect case node(left: Tree, right: Tree)
}

@Archivable struct Options: OptionSet {
  let rawValue: UInt8
  static let music = Options(rawValue: 1)
}

@Archivable struct Implicit {
  var unwrapped: Int!
  var x: Int = 4
  var spelled: Optional<String>
  @Key("was") @Merge(.max) var now = 5
}

@Suite struct CompilationTests {
  func again<V: Archivable>(_ value: V) throws -> V { try Archive.decode(V.self, from: Archive.encode(value)) }

  @Test func observedObjectsKeepTheirValues() throws {
    let watched = Watched()
    watched.points = 5
    watched.add("x")
    watched.parent = watched
    watched.cache = [1]
    let copy = try again(watched)
    #expect(copy.points == 5 && copy.names == ["x"] && copy.parent === copy && copy.cache.isEmpty)
    watched.parent = nil
    copy.parent = nil
  }

  @Test func objectiveCStyleClassesKeepTheirValues() throws {
    let sprite = Sprite(texture: "hero.png", layer: 4)
    sprite.alpha = 0.5
    let copy = try again(sprite)
    #expect(copy.texture == "hero.png" && copy.layer == 4 && copy.alpha == 0.5)
  }

  @Test @MainActor func typesOfTheMainActorAreSavedOnIt() throws {
    let scene = Scene()
    scene.next = scene
    let copy = try again(scene)
    #expect(copy.title == "intro" && copy.next === copy)
    scene.next = nil
    copy.next = nil
    #expect(try again(HUD()).ammo == ["gun": 6])
  }

  @Test func publicTypesAndLateSubclassesKeepTheirValues() throws {
    #expect(try again(PublicSave(id: 3, b: "b")) == PublicSave(id: 3, b: "b"))
    let sub = PublicSub()
    sub.x = 9
    sub.default = "e"
    #expect(try again(sub).x == 9)
    #expect(try again(sub).default == "e")
  }

  @Test func genericTypesKeepTheirValues() throws {
    #expect(try again(Stack(storage: ["a", "b"], top: "a")).storage == ["a", "b"])
    let cell = Cell("x")
    cell.next = Cell("y")
    #expect(try again(cell).next?.value == "y")
    guard
      case .node(left: .leaf(1), right: .node) = try again(
        Tree.node(left: .leaf(1), right: .node(left: .leaf(2), right: .leaf(3))))
    else {
      Issue.record("the decoded tree has another shape")
      return
    }
    #expect(try again([Options.music, []]) == [.music, []])
  }

  @Test func unusualSpellingsKeepTheirValues() throws {
    let copy = try again(Implicit(unwrapped: 3, x: 5, spelled: "s", now: 7))
    #expect(copy.unwrapped == 3 && copy.x == 5 && copy.spelled == "s" && copy.now == 7)
  }
}
