#if Cloud
import Foundation
import KeepsakeInspection
import KeepsakeInterchange

/// Finds what a keyed archive loses in another form, once that is a keyed archive again.
///
/// Both archives are compared side by side, starting at the top; the numbers of their objects don't matter. Whatever
/// isn't the same is a loss, so that the list is complete whatever wrote the other archive: nothing here knows what
/// conversions do.
///
/// Objects of Foundation's classes that are shown as what they represent, such as an NSValue as its numbers, come back
/// as the plainest class that has the same contents. That is one loss, by the object's class. Where an object comes
/// back as a dictionary, its fields are compared with those of the same names. Objects that have no counterpart there
/// are losses by their classes.
struct KeyedFidelity {
  /// What the other archive was made from.
  enum Form {
    /// A file with the same objects.
    case objects
    /// A file of values without objects. What it has of nulls, and of objects that several others refer to, is
    /// reported by `PlainForm`.
    case values
  }

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
    var isField = false
  }

  let old: KeyedArchive
  let new: KeyedArchive
  private let form: Form
  private var work: [Pair] = []
  private var met: Set<LocationPair> = []
  private var metClasses: Set<LocationPair> = []
  /// Values without a counterpart, and the objects that have one.
  private var alone: [(value: PropertyList, path: String)] = []
  private var compared: Set<UInt64> = []
  private var sharing = KeyedSharing()
  private var losses: [PlainForm.Loss] = []
  /// The index in `losses`, by what is lost.
  private var places: [String: Int] = [:]

  static let classKey = "$class"
  static let keysKey = "NS.keys"
  static let valuesKey = "NS.objects"
  /// The number of characters of a path; of a long one the end is kept, which is the most informative part.
  private static let pathCharacters = 200

  /// Returns one entry for each kind of difference; empty if there is none.
  ///
  /// - Throws: `PropertyListError` for an archive that is damaged.
  static func losses(from old: PropertyList, to new: PropertyList, as form: Form) throws -> [PlainForm.Loss] {
    var comparison = KeyedFidelity(old: try KeyedArchive(old), new: try KeyedArchive(new), form)
    try comparison.run(old, new)
    return comparison.losses
  }

  private init(old: KeyedArchive, new: KeyedArchive, _ form: Form) {
    (self.old, self.new, self.form) = (old, new, form)
  }

  private mutating func run(_ oldList: PropertyList, _ newList: PropertyList) throws {
    if oldList["$archiver"] != newList["$archiver"] { lose("name of another archiver", "$archiver") }
    for (entry, other) in Self.matched(oldList.dictionary ?? [], newList.dictionary ?? []) {
      let isKnown = ["$archiver", "$objects", "$top"].contains(entry.key)
      if !isKnown, other != entry.value { lose("keys beside those of the archive itself", entry.key) }
    }
    if old.objects.first != new.objects.first, let first = old.objects.first, first != .string("$null") {
      lose("object in the place of nil", "$objects[0]")
    }
    compareTop()
    while let pair = work.popLast() { try compare(pair) }
    loseAlone()
    for loss in try sharing.losses(in: old, as: form) { lose(loss.what, loss.path, loss.count) }
    let unreached = Self.unreached(old)
    let more = unreached.count - Self.unreached(new).count
    if more > 0, let first = unreached.first { lose("objects that nothing refers to", "$objects[\(first)]", more) }
  }

  /// Compares the values at the top by their keys. Without objects, a single one comes back as the root, and several as
  /// the entries of a dictionary.
  private mutating func compareTop() {
    let (top, others) = (old.top, new.top)
    let areKept = form == .objects || Set(top.map { ExactText($0.key) }) == Set(others.map { ExactText($0.key) })
    if !areKept, let entry = top.first, let other = others.first, top.count == 1, others.count == 1 {
      lose("key at the top, which comes back as \(other.key.prefix(80))", entry.key)
      return push(entry.value, other.value, entry.key)
    }
    let members = others.count == 1 ? members(of: resolved(others[0].value, in: new), in: new) : nil
    for (entry, other) in Self.matched(top, areKept ? others : members ?? []) {
      guard let other else {
        leftOut(entry.value, entry.key)
        continue
      }
      if !areKept { lose("values at the top, which come back in a dictionary", entry.key) }
      push(entry.value, other, entry.key, isField: !areKept)
    }
  }

  private mutating func compare(_ pair: Pair) throws {
    let (a, b) = (resolved(pair.old, in: old), resolved(pair.new, in: new))
    if let uid = pair.old.uid { compared.insert(uid) }
    if let one = pair.old.uid, let other = pair.new.uid,
      !met.insert(LocationPair(old: one, new: other, isField: pair.isField)).inserted
    {
      return
    }
    let (was, is_) = (words(pair.old, a, in: old), words(pair.new, b, in: new))
    sharing.note(pair.old.uid, pair.new.uid, keepsClass: was == is_, at: pair.path)
    if pair.isField, Self.isSame(a, b) || (a == .null && is_ == "NSNull") { return }
    if was != is_ {
      lose("\(was), which comes back as \(is_)", pair.path)
      // Of a class that has the same fields, such as a list that can't be changed: what is in them may differ, too.
      guard case .dictionary(let entries) = a, case .dictionary(let others) = b,
        Set(entries.map { ExactText($0.key) }) == Set(others.map { ExactText($0.key) })
      else { return try compareByName(a, b, pair.path) }
    }
    switch (a, b) {
    case (.array(let elements), .array(let others)), (.set(let elements), .set(let others)):
      compareLists(elements, others, pair.path, was)
    case (.dictionary, .dictionary): compareFields(a, b, pair.path)
    case (.float(let number), .number(let wide)) where Self.isExact(.number(Double(number)), .number(wide)):
      lose("numbers of 32 bits, which come back with 64", pair.path)
    default: if !Self.isExact(a, b) { lose("value of the class \(was)", pair.path) }
    }
  }

  private mutating func compareLists(
    _ elements: [PropertyList], _ others: [PropertyList], _ path: String, _ words: String
  ) {
    var own = Array(elements.enumerated())
    if own.count != others.count {
      lose("value of the class \(words)", path)
      // Where a format has no null, that is what is missing.
      own = own.filter { !isNil($0.element) }
      guard own.count == others.count else {
        for (index, element) in own { loseLater(element, path + "[\(index)]") }
        return
      }
    }
    for ((index, element), other) in zip(own, others) { push(element, other, path + "[\(index)]") }
  }

  // MARK: Objects that come back as others

  /// Compares what an object, or a dictionary, has under the names that the dictionary has that it comes back as.
  private mutating func compareByName(_ a: PropertyList, _ b: PropertyList, _ path: String) throws {
    guard var others = members(of: b, in: new) else {
      if !compareListOfPairs(a, b, path) { loseLater(a, path) }
      return
    }
    let own = members(of: a, in: old)
    // An NSValue has its numbers under other names there: its class alone is what is lost. A program's own objects
    // have each field under its name.
    let isByName = try own != nil || old.showing(a) == .fields
    let entries = own ?? fields(of: a)
    if own == nil, let place = others.firstIndex(where: { $0.key == PlainForm.classKey }) { others.remove(at: place) }
    for (entry, other) in Self.matched(entries, others) {
      let place = path + "." + entry.key
      if let other {
        push(entry.value, other, place, isField: true)
      } else if isByName, !isNil(entry.value) {
        leftOut(entry.value, place)
      } else {
        loseLater(entry.value, place)
      }
    }
    if isByName {
      for (entry, known) in Self.matched(others, entries) where known == nil {
        lose("fields that weren't there", path + "." + entry.key)
      }
    } else if entries.isEmpty {
      loseLater(a, path)
    }
  }

  /// Compares a dictionary whose keys aren't all texts with a list of its pairs. Returns false if it isn't one.
  private mutating func compareListOfPairs(_ a: PropertyList, _ b: PropertyList, _ path: String) -> Bool {
    guard let keys = a[Self.keysKey]?.array, let values = a[Self.valuesKey]?.array, keys.count == values.count,
      let list = b[Self.valuesKey]?.array, list.count == keys.count
    else { return false }
    let pairs = list.compactMap { resolved($0, in: new)[Self.valuesKey]?.array }
    guard pairs.count == keys.count, pairs.allSatisfy({ $0.count == 2 }) else { return false }
    for (index, pair) in pairs.enumerated() {
      push(keys[index], pair[0], path + ".\(Self.keysKey)[\(index)]")
      push(values[index], pair[1], path + ".\(Self.valuesKey)[\(index)]")
    }
    return true
  }

  private func fields(of value: PropertyList) -> [PropertyList.Entry] {
    (value.dictionary ?? []).filter { $0.key != Self.classKey }.map { .init(KeyedObjectTable.shown($0.key), $0.value) }
  }

  private mutating func loseLater(_ value: PropertyList, _ path: String) { alone.append((value, path)) }

  private mutating func leftOut(_ value: PropertyList, _ path: String) {
    lose("\(words(value, resolved(value, in: old), in: old)), which is left out", path)
    if let uid = value.uid { compared.insert(uid) }
    for entry in fields(of: resolved(value, in: old)) { loseLater(entry.value, path + "." + entry.key) }
  }

  /// Reports the objects that weren't compared with anything, if their values don't show their classes.
  private mutating func loseAlone() {
    while let (given, path) = alone.popLast() {
      // What is in an object that was compared is reported already, but it may be that object itself that leads here.
      if let uid = given.uid, !compared.insert(uid).inserted { continue }
      let value = resolved(given, in: old)
      if given.uid != nil, let name = KeyedClasses.name(of: value, in: old.objects), !name.isOfValue {
        lose("\(name.name.prefix(80)), whose class isn't kept", path)
      }
      switch value {
      case .array(let elements), .set(let elements):
        for (index, element) in elements.enumerated() { alone.append((element, cut(path + "[\(index)]"))) }
      case .dictionary:
        for entry in fields(of: value) { alone.append((entry.value, cut(path + "." + entry.key))) }
      default: break
      }
    }
  }

  // MARK: Objects that come back as themselves

  private mutating func compareFields(_ a: PropertyList, _ b: PropertyList, _ path: String) {
    if let uid = a[Self.classKey]?.uid, let other = b[Self.classKey]?.uid { compareClasses(uid, other, path) }
    let isByName = comparePairs(a, b, path)
    let (entries, others) = (a.dictionary ?? [], inOrder(of: a, b).dictionary ?? [])
    func isCompared(_ key: String) -> Bool {
      key == Self.classKey || isByName && (key == Self.keysKey || key == Self.valuesKey)
    }
    for (entry, other) in Self.matched(entries, others) where !isCompared(entry.key) {
      let place = path + "." + entry.key
      if let other {
        push(entry.value, other, place)
      } else {
        lose("fields that aren't shown", place)
        loseLater(entry.value, place)
      }
    }
    for (entry, known) in Self.matched(others, entries) where known == nil && !isCompared(entry.key) {
      lose("fields that weren't there", path + "." + entry.key)
    }
  }

  /// Compares the pairs of two dictionaries of Foundation's by their keys. Returns false if they have the same ones, or
  /// keys that aren't texts.
  private mutating func comparePairs(_ a: PropertyList, _ b: PropertyList, _ path: String) -> Bool {
    guard let own = members(of: a, in: old), let others = members(of: b, in: new),
      own.count != others.count || Set(own.map { ExactText($0.key) }) != Set(others.map { ExactText($0.key) })
    else { return false }
    for (entry, other) in Self.matched(own, others) {
      let place = path + "." + entry.key
      if let other { push(entry.value, other, place) } else { leftOut(entry.value, place) }
    }
    for (entry, known) in Self.matched(others, own) where known == nil {
      lose("fields that weren't there", path + "." + entry.key)
    }
    return true
  }

  private mutating func compareClasses(_ uid: UInt64, _ other: UInt64, _ path: String) {
    guard metClasses.insert(LocationPair(old: uid, new: other)).inserted else { return }
    let (a, b) = (object(uid, in: old), object(other, in: new))
    guard a["$classname"] == b["$classname"] else { return }
    if a["$classes"] != b["$classes"] {
      lose("list of the classes above \((a["$classname"]?.string ?? "one").prefix(80))", path)
    }
    if let hints = a["$classhints"]?.array, !hints.isEmpty, a["$classhints"] != b["$classhints"] {
      lose("hints naming substitute classes", path)
    }
    for (entry, other) in Self.matched(a.dictionary ?? [], b.dictionary ?? []) {
      let isKnown = ["$classname", "$classes", "$classhints"].contains(entry.key)
      if !isKnown, other != entry.value { lose("keys beside those of a class", path) }
    }
  }

  // MARK: Reporting

  private mutating func push(_ old: PropertyList, _ new: PropertyList, _ path: String, isField: Bool = false) {
    work.append(Pair(old: old, new: new, path: cut(path), isField: isField))
  }

  private func cut(_ path: String) -> String {
    path.utf8.count > Self.pathCharacters ? "…" + String(path.suffix(Self.pathCharacters)) : path
  }

  private mutating func lose(_ what: String, _ path: String, _ count: Int = 1) {
    if let place = places[what] {
      losses[place].count += count
    } else {
      places[what] = losses.count
      losses.append(.init(what: what, count: count, path: path.isEmpty ? "the top" : path))
    }
  }
}
#endif
