import Foundation
public import KeepsakeArchive
import KeepsakeInspection
import Testing

@testable import ArchiveWorlds

// More declarations of the kinds that games have: that they compile is most of the test.

@globalActor actor SimulationActor { static let shared = SimulationActor() }

@SimulationActor @Archivable struct Grid {
  var tiles: [UInt8] = [1, 2]
  var name: String
}
@SimulationActor @Archivable enum Phase {
  case idle
  case running(Grid)
}
@SimulationActor @Archivable(subclasses: [Machine.self]) class Device {
  var phase = Phase.idle
  var next: Device?
}
@SimulationActor @Archivable final class Machine: Device { var power = 2.5 }

@Archivable class TexturedSprite: Sprite {
  var tint: [Double] = [1]
}
@Archivable final class Particle: TexturedSprite {
  let born: Int
  init(born: Int) {
    self.born = born
    super.init(texture: "spark", layer: 9)
  }
}

@Archivable package struct PackageSave: Equatable {
  package var a = 1, b: [String] = []
  package init() {}
}
@Archivable package class PackageBase {
  package var x = 1
  package init() {}
}
@Archivable package final class PackageSub: PackageBase { package var y = 2 }

@Archivable public class PublicClosed {
  public private(set) var hits = 0
  public init() {}
  func hit() { hits += 1 }
}
@Archivable final class InternalSub: PublicClosed { var z = 3 }

@Archivable public enum PublicKind: Sendable, Equatable {
  case small
  case big(Int)
}
@Archivable public struct PublicBox<Value>: Sendable where Value: Sendable { public var value: Value }

@available(macOS 16, iOS 19, *)
@Archivable struct Fresh {
  var x = 1
  @available(macOS 16, iOS 19, *)
  @Archivable enum Kind {
    case a
    case b(Int)
  }
  var kind = Kind.b(2)
}

@Archivable struct Keywords: Equatable {
  var `class` = 1, `default`: String = "d", `self`: [Int] = [1], `init` = true
  @Key("var") var `in`: Int? = 4
  @Archivable enum Kind: Equatable {
    case `default`
    case `switch`(in: Int, where: Kind2?)
    @Fallback case `self`
  }
  @Archivable enum Kind2: String {
    case `true`
    case `nil` = "none"
  }
  var kind = Kind.switch(in: 3, where: .nil)
}

@propertyWrapper struct Clamped: Equatable {
  private var value: Int
  init(wrappedValue: Int) { value = min(max(wrappedValue, 0), 100) }
  var wrappedValue: Int {
    get { value }
    set { value = min(max(newValue, 0), 100) }
  }
}

@Archivable struct Mixed {
  @Clamped var percent = 50
  private(set) var a = 1, b = 2.0, c: [Int]? = nil
  var computed: Int { a + 1 }
  var settable: Int {
    get { a }
    set { a = newValue }
  }
  static let limit = 5
  @MainActor static var shared = 6
  @Unsaved lazy var cache: [Int] = [a]
  @Unsaved private var secret = 1
  var watched = 3 {
    willSet { secret = newValue }
    didSet { secret += 1 }
  }
  let fixed: Int
  subscript(index: Int) -> Int { index }
  enum Inner { case x }
  mutating func set(_ value: Int) { (a, c) = (value, [value]) }
  var seen: Int { secret }
  init(fixed: Int) { self.fixed = fixed }
}

private enum Privately {
  @Archivable fileprivate final class Node {
    fileprivate var next: Node?
    private var hidden = 1
    func raise() -> Int {
      hidden += 1
      return hidden
    }
  }
  @Archivable enum Kind<Value: Hashable> {
    case one(Value)
    case many(Set<Value>, [String: Value])
    case none
  }
  enum Deeper {
    @Archivable struct Deepest<A, B: Comparable> {
      var a: A
      var b: [B]
      @Unsaved var c: ((A) -> B)?
    }
  }
}

@Archivable private class Holder<Value: Archivable, Tag> {
  var value: Value
  var values: [Value] = []
  @Unsaved var tag: Tag?
  init(_ value: Value) { self.value = value }
}
@Archivable private final class NumberHolder: Holder<Int, String> { var extra = 1 }

private struct Opaque {}

@Archivable private struct Page<Value> {
  var number = 1
  var value: Value? { nil }
  static var values: [Value] { [] }
}

@Suite struct ShapeTests {
  func again<V: Archivable>(_ value: V) throws -> V { try Archive.decode(V.self, from: Archive.encode(value)) }

  @Test @SimulationActor func typesOfAnotherActorAreSavedOnIt() throws {
    let (device, machine) = (Device(), Machine())
    device.phase = .running(Grid(name: "g"))
    (device.next, machine.next) = (machine, device)
    let copy = try Archive.decode(Device.self, from: Archive.encode(device))
    #expect((copy.next as? Machine)?.power == 2.5 && copy.next?.next === copy)
    guard case .running(let grid) = copy.phase, grid.name == "g" else {
      Issue.record("the phase changed")
      return
    }
    for object in [device, copy] { object.next = nil }
  }

  @Test func subclassesOfObjectiveCStyleClassesKeepTheirValues() throws {
    let particle = Particle(born: 8)
    particle.tint = [0.5, 1]
    particle.alpha = 0.25
    let copy = try again(particle)
    #expect(
      copy.born == 8 && copy.tint == [0.5, 1] && copy.alpha == 0.25 && copy.texture == "spark" && copy.layer == 9)
    #expect(
      try Archive.decode(TexturedSprite.self, from: Archive.encode(TexturedSprite(texture: "t", layer: 1))).texture
        == "t")
  }

  @Test func everyAccessLevelIsSaved() throws {
    var save = PackageSave()
    (save.a, save.b) = (5, ["x"])
    #expect(try again(save) == save)
    let sub = PackageSub()
    (sub.x, sub.y) = (7, 8)
    #expect(try again(sub).x == 7 && again(sub).y == 8)
    let closed = InternalSub()
    closed.hit()
    #expect(try again(closed).hits == 1 && again(closed).z == 3)
    #expect(try again([PublicKind.big(3), .small]) == [.big(3), .small])
    #expect(try again(PublicBox(value: [1])).value == [1])
  }

  @Test func namesThatAreKeywordsAreSavedUnderTheirNames() throws {
    let value = Keywords(class: 2, default: "e", self: [5], init: false, in: nil)
    #expect(try again(value) == value)
    let text = try ArchiveInspection(of: Archive.encode(value)).text()
    #expect(
      text.contains("  class: 2") && text.contains("  default: \"e\"") && text.contains("  var: nil")
        && text.contains(".switch"))
  }

  @Test func everyKindOfPropertyIsSavedOrLeftOut() throws {
    var value = Mixed(fixed: 9)
    value.percent = 300
    value.set(4)
    value.watched = 11
    let copy = try again(value)
    #expect(copy.percent == 100 && copy.a == 4 && copy.b == 2 && copy.c == [4] && copy.watched == 11 && copy.fixed == 9)
    let keys = try ArchiveInspection(of: Archive.encode(value)).types[0].fields.map(\.key)
    #expect(keys == ["percent", "a", "b", "c", "watched", "fixed"])
  }

  @Test func privateAndGenericTypesAreSaved() throws {
    let node = Privately.Node()
    node.next = node
    let copy = try again(node)
    #expect(copy.next === copy && copy.raise() == 2)
    for node in [node, copy] { node.next = nil }
    guard case .many(["x"], ["y": "z"]) = try again(Privately.Kind.many(["x"], ["y": "z"])) else {
      Issue.record("the kind changed")
      return
    }
    #expect(try again(Privately.Deeper.Deepest(a: [1], b: ["x"])).b == ["x"])
    let holder = Holder<String, () -> Void>("v")
    holder.values = ["a"]
    #expect(try again(holder).values == ["a"])
    let numbers = NumberHolder(5)
    numbers.extra = 6
    #expect(try again(numbers).value == 5 && again(numbers).extra == 6)
  }

  @Test("Computed and static properties have no part in what a generic type is saved as")
  func computedProperties() throws {
    let data = try Archive.encode(Page<Opaque>())
    #expect(try Archive.decode(Page<Opaque>.self, from: data).number == 1)
    #expect(Page<Opaque>.archiveName == "Page<Opaque>")
  }
}
