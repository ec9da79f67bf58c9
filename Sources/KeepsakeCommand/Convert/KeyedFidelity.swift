#if Cloud
import Foundation
import KeepsakeInterchange

/// Finds what a keyed archive loses in its tagged form.
///
/// Objects of Foundation's classes that are shown as what they represent, such as an NSValue as its numbers, are
/// written as the plainest class that has the same contents.
///
/// Both archives are compared side by side, starting at the top; the numbers of their objects don't matter.
struct KeyedFidelity {
  private struct Pair {
    var old: PropertyList
    var new: PropertyList
    var path: String
  }
  private struct LocationPair: Hashable {
    var old: UInt64
    var new: UInt64
  }

  private let oldObjects: [PropertyList]
  private let newObjects: [PropertyList]
  private var work: [Pair] = []
  private var met: Set<LocationPair> = []
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
  }

  private mutating func compare(_ pair: Pair) {
    let (old, new) = (resolved(pair.old, oldObjects), resolved(pair.new, newObjects))
    if let a = pair.old.uid, let b = pair.new.uid, !met.insert(LocationPair(old: a, new: b)).inserted { return }
    let (was, is_) = (words(pair.old, old, oldObjects), words(pair.new, new, newObjects))
    if was != is_ {
      lose("\(was), which comes back as \(is_)", pair.path)
      // Of a class that has the same fields, such as a list that can't be changed: what is in them may differ, too.
      guard case .dictionary(let entries) = old, case .dictionary(let others) = new,
        Set(entries.map(\.key)) == Set(others.map(\.key))
      else { return }
    }
    switch (old, new) {
    case (.array(let a), .array(let b)) where a.count == b.count:
      for (index, both) in zip(a, b).enumerated() { push(both.0, both.1, pair.path + "[\(index)]") }
    case (.dictionary, .dictionary): compareFields(old, new, pair.path)
    default: if old != new { lose("value of the class \(was)", pair.path) }
    }
  }

  private mutating func compareFields(_ old: PropertyList, _ new: PropertyList, _ path: String) {
    guard case .dictionary(let entries) = old, case .dictionary(let others) = inOrder(of: old, new) else { return }
    let values = Dictionary(others.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    if let uid = old[Self.classKey]?.uid, let other = new[Self.classKey]?.uid { compareClasses(uid, other, path) }
    for entry in entries where entry.key != Self.classKey {
      let place = path.isEmpty ? entry.key : path + "." + entry.key
      if let value = values[entry.key] {
        push(entry.value, value, place)
      } else {
        lose("fields that aren't shown", place)
      }
    }
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
    if a["$classes"] != b["$classes"] { lose("list of the classes above \(a["$classname"]?.string ?? "one")", path) }
    if let hints = a["$classhints"]?.array, !hints.isEmpty { lose("hints naming substitute classes", path) }
  }

  private mutating func push(_ old: PropertyList, _ new: PropertyList, _ path: String) {
    let path = path.utf8.count > Self.pathCharacters ? "…" + String(path.suffix(Self.pathCharacters)) : path
    work.append(Pair(old: old, new: new, path: path))
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
