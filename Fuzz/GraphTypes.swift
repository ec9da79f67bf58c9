import Foundation
import KeepsakeArchive

// Every way in which one object leads to another.

@Archivable final class Chain: Linked {
  var value: Int
  var next: Chain? { didSet { Registry.note(self) } }
  init(_ value: Int) { self.value = value }
  func unlink() { next = nil }
}

/// References that an initialiser needs.
@Archivable final class Need {
  let value: UInt8
  let next: Need?
  let both: [Need]
  init(_ value: UInt8, _ next: Need?, _ both: [Need] = []) {
    self.value = value
    self.next = next
    self.both = both
  }
}

@Archivable final class Owner: Linked {
  var owned: [Owned] = [] { didSet { Registry.note(self) } }
  var byName: [String: Owned] = [:] { didSet { Registry.note(self) } }
  func unlink() {
    owned = []
    byName = [:]
  }
}

@Archivable final class Owned {
  unowned let owner: Owner
  unowned var other: Owner?
  var name: String
  init(owner: Owner, name: String) {
    self.owner = owner
    self.name = name
  }
}

/// A key whose hash leans on what its initialiser reads.
@Archivable final class Badge: Hashable {
  let id: Int16
  init(_ id: Int16) { self.id = id }
  static func == (a: Badge, b: Badge) -> Bool { a.id == b.id }
  func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

@Archivable final class Box<Content: Archivable>: Linked {
  var content: Content
  var more: [Box<Content>]? { didSet { Registry.note(self) } }
  init(_ content: Content) { self.content = content }
  func unlink() { more = nil }
}

@Archivable struct Bond {
  var to: Chain?
  var weight = 1.0
}

@Archivable enum Link {
  case none
  case chain(Chain)
  case bonds([Bond], Need?)
}

@Archivable(subclasses: [Truck.self]) class Vehicle: Linked {
  var wheels: Int
  var links: [Link] = [] { didSet { Registry.note(self) } }
  weak var leader: Vehicle?
  init(wheels: Int) { self.wheels = wheels }
  func unlink() { links = [] }
}

@Archivable(subclasses: [FireTruck.self]) class Truck: Vehicle {
  let load: [String]
  var badge: Badge?
  init(load: [String]) {
    self.load = load
    super.init(wheels: 6)
  }
}

/// Its own fields have initial values, so that they are read after the inherited initialiser.
@Archivable final class FireTruck: Truck {
  var ladder: Float = 3
  var crew: Set<Badge> = []
}

@Archivable struct Graph {
  var vehicles: [Vehicle] = []
  var chain: Chain?
  var need: Need?
  var owner: Owner?
  var owned: [Owned] = []
  var badges: Set<Badge> = []
  var byBadge: [Badge: [Chain?]] = [:]
  var box: Box<Int>?
  var boxes: [Box<String>] = []
  var link = Link.none
}
