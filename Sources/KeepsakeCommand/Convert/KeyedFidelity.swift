#if Cloud
import Foundation
import KeepsakeInspection
import KeepsakeInterchange

/// Finds what a keyed archive loses in another form, once that is a keyed archive again.
///
/// Objects of Foundation's classes that are shown as what they represent, such as an NSValue as its numbers, are
/// written as the plainest class that has the same contents.
///
/// Where an object comes back as a dictionary, its fields are compared with those of the same names; objects that have
/// no counterpart there are losses by their classes.
///
/// Both archives are compared side by side, starting at the top; the numbers of their objects don't matter.
struct KeyedFidelity {
  private struct Pair {
    var old: PropertyList
    var new: PropertyList
    var path: String
    /// Whether the value of a field is compared with that of a dictionary, which has everything as an object.
    var isField = false
  }
  private struct LocationPair: Hashable {
    var old: UInt64
    var new: UInt64
  }

  private let oldObjects: [PropertyList]
  private let newObjects: [PropertyList]
  private var work: [Pair] = []
  private var met: Set<LocationPair> = []
  /// Values without a counterpart, and the objects that have one.
  private var alone: [(value: PropertyList, path: String)] = []
  private var compared: Set<UInt64> = []
  private var losses: [PlainForm.Loss] = []
  /// The index in `losses`, by what is lost.
  private var places: [String: Int] = [:]

  private static let classKey = "$class"
  private static let keysKey = "NS.keys"
  private static let valuesKey = "NS.objects"
  /// The number of characters of a path; of a long one the end is kept, which is the most informative part.
  private static let pathCharacters = 200

  /// Returns one entry for each kind of difference; empty if there is none.
  static func losses(from old: PropertyList, to new: PropertyList) -> [PlainForm.Loss] {
    var comparison = KeyedFidelity(oldObjects: old["$objects"]?.array ?? [], newObjects: new["$objects"]?.array ?? [])
    comparison.run(old, new)
    return comparison.losses
  }

  private init(oldObjects: [PropertyList], newObjects: [PropertyList]) {
    (self.oldObjects, self.newObjects) = (oldObjects, newObjects)
  }

  private mutating func run(_ old: PropertyList, _ new: PropertyList) {
    if old["$archiver"] != new["$archiver"] { lose("name of another archiver", "$archiver") }
    if case .dictionary(let entries) = old {
      for entry in entries where new[entry.key] == nil { lose("keys beside those of the archive itself", entry.key) }
    }
    // A root that is alone at the top may have a key of its own.
    if let top = old["$top"], let again = new["$top"] { compareFields(top, again, "") }
    while let pair = work.popLast() { compare(pair) }
    loseAlone()
  }

  private mutating func compare(_ pair: Pair) {
    let (old, new) = (resolved(pair.old, oldObjects), resolved(pair.new, newObjects))
    if let uid = pair.old.uid { compared.insert(uid) }
    if let a = pair.old.uid, let b = pair.new.uid, !met.insert(LocationPair(old: a, new: b)).inserted { return }
    if pair.isField, Self.isSame(old, new) || (old == .null && words(pair.new, new, newObjects) == "NSNull") { return }
    let (was, is_) = (words(pair.old, old, oldObjects), words(pair.new, new, newObjects))
    if was != is_ {
      lose("\(was), which comes back as \(is_)", pair.path)
      // Of a class that has the same fields, such as a list that can't be changed: what is in them may differ, too.
      guard case .dictionary(let entries) = old, case .dictionary(let others) = new,
        Set(entries.map(\.key)) == Set(others.map(\.key))
      else { return compareByName(old, new, pair.path) }
    }
    switch (old, new) {
    case (.array(let a), .array(let b)) where a.count == b.count:
      for (index, both) in zip(a, b).enumerated() { push(both.0, both.1, pair.path + "[\(index)]") }
    case (.dictionary, .dictionary): compareFields(old, new, pair.path)
    default: if old != new { lose("value of the class \(was)", pair.path) }
    }
    if case .array(let a) = old, case .array(let b) = new, a.count != b.count { loseLater(old, pair.path) }
  }

  /// Returns whether two values of fields are the same number, text, date or data.
  private static func isSame(_ old: PropertyList, _ new: PropertyList) -> Bool {
    switch old {
    case .float(let value): new == .number(Double(value))
    case .bool, .integer, .number, .string, .data, .date: old == new
    default: false
    }
  }

  // MARK: Objects that come back as others

  /// Compares what an object, or a dictionary, has under the names that the dictionary has that it comes back as.
  private mutating func compareByName(_ old: PropertyList, _ new: PropertyList, _ path: String) {
    guard let others = members(of: new, newObjects) else { return loseLater(old, path) }
    let values = Dictionary(others, uniquingKeysWith: { $1 })
    let own = members(of: old, oldObjects) ?? fields(of: old)
    for (name, value) in own {
      if let other = values[name] {
        push(value, other, path + "." + name, isField: true)
      } else {
        loseLater(value, path + "." + name)
      }
    }
    if own.isEmpty { loseLater(old, path) }
  }

  /// Returns what is in a dictionary of Foundation's whose keys are texts; nil for any other value.
  private func members(of value: PropertyList, _ objects: [PropertyList]) -> [(String, PropertyList)]? {
    guard let names = names(of: value, objects), let values = value[Self.valuesKey]?.array, names.count == values.count
    else { return nil }
    return Array(zip(names, values))
  }

  private func fields(of value: PropertyList) -> [(String, PropertyList)] {
    (value.dictionary ?? []).filter { $0.key != Self.classKey }.map { (KeyedClasses.shown($0.key), $0.value) }
  }

  private mutating func loseLater(_ value: PropertyList, _ path: String) { alone.append((value, path)) }

  /// Reports the objects that weren't compared with anything, if their values don't show their classes.
  private mutating func loseAlone() {
    while let (given, path) = alone.popLast() {
      // What is in an object that was compared is reported already, but it may be that object itself that leads here.
      if let uid = given.uid, !compared.insert(uid).inserted { continue }
      let value = resolved(given, oldObjects)
      if given.uid != nil, let name = KeyedClasses.name(of: value, in: oldObjects), !name.isOfValue {
        lose("\(name.name.prefix(80)), whose class isn't kept", path)
      }
      switch value {
      case .array(let elements), .set(let elements):
        for (index, element) in elements.enumerated() { alone.append((element, cut(path + "[\(index)]"))) }
      case .dictionary:
        for (name, element) in fields(of: value) { alone.append((element, cut(path + "." + name))) }
      default: break
      }
    }
  }

  private mutating func compareFields(_ old: PropertyList, _ new: PropertyList, _ path: String) {
    guard case .dictionary(let entries) = old, case .dictionary(let others) = inOrder(of: old, new) else { return }
    let values = Dictionary(others.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    if let uid = old[Self.classKey]?.uid, let other = new[Self.classKey]?.uid { compareClasses(uid, other, path) }
    let isByName = comparePairs(old, new, path)
    for entry in entries where entry.key != Self.classKey {
      if isByName, entry.key == Self.keysKey || entry.key == Self.valuesKey { continue }
      let place = path.isEmpty ? entry.key : path + "." + entry.key
      if let value = values[entry.key] {
        push(entry.value, value, place)
      } else {
        lose("fields that aren't shown", place)
      }
    }
  }

  /// Compares the pairs of two dictionaries of Foundation's by their keys. Returns false if they have the same ones, or
  /// keys that aren't texts.
  private mutating func comparePairs(_ old: PropertyList, _ new: PropertyList, _ path: String) -> Bool {
    guard let own = members(of: old, oldObjects), let others = members(of: new, newObjects),
      Set(own.map(\.0)) != Set(others.map(\.0))
    else { return false }
    let values = Dictionary(others, uniquingKeysWith: { $1 })
    for (name, value) in own {
      if let other = values[name] {
        push(value, other, path + "." + name)
      } else {
        lose("\(words(value, resolved(value, oldObjects), oldObjects)), which is left out", path + "." + name)
        if let uid = value.uid { compared.insert(uid) }
        for (below, inner) in fields(of: resolved(value, oldObjects)) {
          loseLater(inner, path + "." + name + "." + below)
        }
      }
    }
    return true
  }

  /// Returns a dictionary of Foundation's with its pairs in the order of another one that has the same keys: their
  /// order has no meaning.
  private func inOrder(of old: PropertyList, _ new: PropertyList) -> PropertyList {
    guard let keys = names(of: old, oldObjects), let others = names(of: new, newObjects), keys != others,
      case .dictionary(let entries) = new, let list = new[Self.keysKey]?.array, let values = new[Self.valuesKey]?.array,
      values.count == others.count
    else { return new }
    let places = Dictionary(others.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
    let order = keys.compactMap { places[$0] }
    guard places.count == others.count, Set(order).count == others.count else { return new }
    return .dictionary(
      entries.map { entry in
        switch entry.key {
        case Self.keysKey: .init(entry.key, .array(order.map { list[$0] }))
        case Self.valuesKey: .init(entry.key, .array(order.map { values[$0] }))
        default: entry
        }
      })
  }

  /// Returns the keys of a dictionary of Foundation's, if they are texts.
  private func names(of value: PropertyList, _ objects: [PropertyList]) -> [String]? {
    guard let keys = value[Self.keysKey]?.array else { return nil }
    let names = keys.compactMap { resolved($0, objects).string }
    return names.count == keys.count ? names : nil
  }

  private mutating func compareClasses(_ old: UInt64, _ new: UInt64, _ path: String) {
    guard met.insert(LocationPair(old: old, new: new)).inserted else { return }
    let (a, b) = (object(old, oldObjects), object(new, newObjects))
    if a["$classname"] == b["$classname"], a["$classes"] != b["$classes"] {
      lose("list of the classes above \(a["$classname"]?.string ?? "one")", path)
    }
    if let hints = a["$classhints"]?.array, !hints.isEmpty { lose("hints naming substitute classes", path) }
  }

  private mutating func push(_ old: PropertyList, _ new: PropertyList, _ path: String, isField: Bool = false) {
    work.append(Pair(old: old, new: new, path: cut(path), isField: isField))
  }

  private func cut(_ path: String) -> String {
    path.utf8.count > Self.pathCharacters ? "…" + String(path.suffix(Self.pathCharacters)) : path
  }

  private func object(_ uid: UInt64, _ objects: [PropertyList]) -> PropertyList {
    uid < UInt64(objects.count) ? objects[Int(uid)] : .null
  }

  private func resolved(_ value: PropertyList, _ objects: [PropertyList]) -> PropertyList {
    guard let uid = value.uid else { return value }
    return uid == 0 ? .null : object(uid, objects)
  }

  /// Describes a value as it was saved.
  private func words(_ given: PropertyList, _ value: PropertyList, _ objects: [PropertyList]) -> String {
    let isObject = given.uid != nil
    switch value {
    case .null: return "nil"
    case .bool, .integer, .number, .float: return isObject ? "NSNumber" : "number"
    case .string: return isObject ? "text" : "text in place"
    case .data: return isObject ? "data" : "data in place"
    case .date: return isObject ? "date" : "date in place"
    case .array, .set: return isObject ? "list" : "list in place"
    case .uid: return "reference"
    case .dictionary:
      guard let type = value[Self.classKey]?.uid else { return isObject ? "dictionary" : "dictionary in place" }
      return object(type, objects)["$classname"]?.string.map { String($0.prefix(80)) } ?? "object"
    }
  }

  private mutating func lose(_ what: String, _ path: String) {
    if let place = places[what] {
      losses[place].count += 1
    } else {
      places[what] = losses.count
      losses.append(.init(what: what, count: 1, path: path.isEmpty ? "the top" : path))
    }
  }
}
#endif
