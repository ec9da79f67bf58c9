import Foundation
import KeepsakeArchive

/// The correspondence between the objects of two archives, and fingerprints of values that take it into account.
struct ObjectMatches {
  private let old: ArchiveInspection
  private let new: ArchiveInspection
  /// By number, the number in the other archive, or -1.
  private var toNew: [Int]
  private var toOld: [Int]
  private var isCompared: [Bool]
  /// By number, the class and `id` as text; nil for objects without an `id`.
  private let oldIdentities: [String?]
  private let newIdentities: [String?]

  /// The field that identifies objects and elements.
  private static let identityKey = "id"
  /// The number of values that a fingerprint includes: enough to distinguish elements, and few enough to compute it for
  /// each.
  private static let fingerprintValues = 256

  init(old: ArchiveInspection, new: ArchiveInspection) {
    self.old = old
    self.new = new
    toNew = Array(repeating: -1, count: old.objects.count)
    toOld = Array(repeating: -1, count: new.objects.count)
    isCompared = Array(repeating: false, count: old.objects.count)
    oldIdentities = Self.identities(old)
    newIdentities = Self.identities(new)
    let unique = Self.unique(newIdentities)
    // The order doesn't matter, because each pair sets its own entries.
    for (identity, number) in Self.unique(oldIdentities) {
      guard let partner = unique[identity] else { continue }
      toNew[number] = partner
      toOld[partner] = number
    }
  }

  // MARK: Pairs

  func areMatched(_ a: Int, _ b: Int) -> Bool { toNew.indices.contains(a) && toNew[a] == b }

  /// Returns whether both are the same object. Two objects that have no partner yet may be matched by this call.
  mutating func match(_ a: Int, _ b: Int) -> Bool {
    guard toNew.indices.contains(a), toOld.indices.contains(b) else { return false }
    if toNew[a] == b { return true }
    guard toNew[a] < 0, toOld[b] < 0 else { return false }
    switch (old.objects[a], new.objects[b]) {
    case (nil, nil): break
    case (let before?, let after?):
      guard old.types[before.type].name == new.types[after.type].name, oldIdentities[a] == newIdentities[b] else {
        return false
      }
    default: return false
    }
    toNew[a] = b
    toOld[b] = a
    return true
  }

  func isToBeCompared(_ a: Int) -> Bool { !isCompared[a] }

  mutating func markCompared(_ a: Int) { isCompared[a] = true }

  func notCompared() -> [(Int, Int)] {
    toNew.indices.filter { toNew[$0] >= 0 && !isCompared[$0] }.map { ($0, toNew[$0]) }
  }

  func unmatched(_ side: DifferenceFinder.Side) -> [Int] {
    let partners = side == .old ? toNew : toOld
    return partners.indices.filter { partners[$0] < 0 }
  }

  // MARK: Identities

  private static func identities(_ archive: ArchiveInspection) -> [String?] {
    archive.objects.map { object in
      object.flatMap { object in identity(object.fields).map { archive.types[object.type].name + " " + $0 } }
    }
  }

  private static func identity(_ fields: [ArchiveValue.Field]) -> String? {
    guard let id = fields.first(where: { $0.key == identityKey })?.value else { return nil }
    switch id {
    case .none, .reference, .array, .set, .dictionary, .vector: return nil
    default: return ValueLine(longest: 100, characters: 200).wholeText(id)
    }
  }

  /// Returns numbers by identity, without identities shared by several objects.
  private static func unique(_ identities: [String?]) -> [String: Int] {
    var numbers: [String: Int] = [:]
    var repeated: Set<String> = []
    for (number, identity) in identities.enumerated() {
      guard let identity else { continue }
      if numbers.updateValue(number, forKey: identity) != nil { repeated.insert(identity) }
    }
    for identity in repeated { numbers[identity] = nil }
    return numbers
  }

  /// Returns the identities of the elements of both lists, if every element has one and no two in a list are equal.
  func identities(of a: [ArchiveValue], _ b: [ArchiveValue]) -> ([String], [String])? {
    guard let before = identities(a, .old), let after = identities(b, .new) else { return nil }
    return (before, after)
  }

  private func identities(_ values: [ArchiveValue], _ side: DifferenceFinder.Side) -> [String]? {
    var identities: [String] = []
    var seen: Set<String> = []
    for value in values {
      guard let identity = identity(of: value, side), seen.insert(identity).inserted else { return nil }
      identities.append(identity)
    }
    return identities
  }

  private func identity(of value: ArchiveValue, _ side: DifferenceFinder.Side) -> String? {
    switch value {
    case .structure(_, let fields), .enumeration(_, _, let fields): Self.identity(fields)
    case .reference(let number): side == .old ? oldIdentities[number] : newIdentities[number]
    default: nil
    }
  }

  // MARK: Fingerprints

  /// Returns a hash that is equal for values that look the same. Used to align lists, where a collision only costs a
  /// longer difference.
  func fingerprint(of value: ArchiveValue, _ side: DifferenceFinder.Side) -> UInt64 {
    var print = Fingerprint()
    var left = Self.fingerprintValues
    add(value, side, to: &print, left: &left, opensObjects: true)
    return print.hash
  }

  /// Returns a hash that is equal for values that look the same apart from nested values: an object whose list changed
  /// is still the same object.
  func outline(of value: ArchiveValue, _ side: DifferenceFinder.Side) -> UInt64 {
    var print = Fingerprint()
    var fields: [ArchiveValue.Field] = []
    switch value {
    case .structure(_, let inner): fields = inner
    case .enumeration(_, let name, let inner):
      print.add(.string(name))
      fields = inner
    case .reference(let number):
      let archive = side == .old ? old : new
      guard let object = archive.objects[number] else { break }
      print.add(.string(archive.types[object.type].name))
      fields = object.fields
    default: return fingerprint(of: value, side)
    }
    for field in fields.prefix(Self.fingerprintValues) {
      if case .reference = field.value { continue }
      if field.value.childCount == nil { print.add(field.value) }
    }
    return print.hash
  }

  /// Recursive only once: an object inside counts only by its class, unless it is matched.
  private func add(
    _ value: ArchiveValue, _ side: DifferenceFinder.Side, to print: inout Fingerprint, left: inout Int,
    opensObjects: Bool
  ) {
    var walk = ValueWalk(value)
    while left > 0, let event = walk.next() {
      guard case .value(let value, _) = event else { continue }
      left -= 1
      guard case .reference(let number) = value else {
        print.add(value)
        continue
      }
      let partner = side == .old ? toNew[number] : number
      if side == .old ? partner >= 0 : toOld[number] >= 0 {
        print.add(.reference(partner))
        continue
      }
      let archive = side == .old ? old : new
      guard let object = archive.objects[number] else { continue }
      print.add(.string(archive.types[object.type].name))
      guard opensObjects else { continue }
      for field in object.fields { add(field.value, side, to: &print, left: &left, opensObjects: false) }
    }
  }
}

/// FNV-1a over values, so the hashes are the same on every machine.
private struct Fingerprint {
  private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325

  private mutating func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }

  private mutating func add(_ tag: UInt8, _ bits: UInt64) {
    add(tag)
    for shift in stride(from: UInt64(0), to: 64, by: 8) { add(UInt8(truncatingIfNeeded: bits >> shift)) }
  }

  private mutating func add(_ tag: UInt8, _ bytes: some Sequence<UInt8>) {
    add(tag)
    for byte in bytes { add(byte) }
  }

  /// Adds a value without its children, which are added separately.
  mutating func add(_ value: ArchiveValue) {
    switch value {
    case .none: add(0)
    case .bool(let value): add(1, value ? 1 : 0)
    case .integer(let value): add(2, UInt64(bitPattern: value))
    case .unsigned(let value): add(3, value)
    case .number(let value):
      if let whole = Int64(exactly: value) { add(2, UInt64(bitPattern: whole)) } else { add(4, value.bitPattern) }
    case .string(let text): add(5, text.utf8)
    case .data(let data): add(6, data)
    case .date(let date): add(7, date.timeIntervalSinceReferenceDate.bitPattern)
    case .uuid(let uuid): add(8, uuid.uuidString.utf8)
    case .url(let text): add(9, text.utf8)
    case .vector(let values), .array(let values), .set(let values): add(10, UInt64(values.count))
    case .dictionary(let pairs): add(11, UInt64(pairs.count))
    case .structure(_, let fields): add(12, UInt64(fields.count))
    case .enumeration(_, let name, _): add(13, name.utf8)
    case .decimal(let digits): add(15, digits.utf8)
    case .reference(let number): add(14, UInt64(bitPattern: Int64(number)))
    }
  }
}
