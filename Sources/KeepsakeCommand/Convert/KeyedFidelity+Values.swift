#if Cloud
import Foundation
import KeepsakeInspection
import KeepsakeInterchange

extension KeyedFidelity {
  // MARK: Looking up

  func object(_ uid: UInt64, in archive: KeyedArchive) -> PropertyList {
    uid < UInt64(archive.objects.count) ? archive.objects[Int(uid)] : .null
  }

  func resolved(_ value: PropertyList, in archive: KeyedArchive) -> PropertyList {
    guard let uid = value.uid else { return value }
    return uid == 0 ? .null : object(uid, in: archive)
  }

  /// Whether a value of the old archive is nil, or what stands for it in lists.
  func isNil(_ value: PropertyList) -> Bool {
    let value = resolved(value, in: old)
    if value == .null || value == .string("$null") { return true }
    return KeyedClasses.name(of: value, in: old.objects)?.name == "NSNull"
  }

  /// Describes a value as it was saved.
  func words(_ given: PropertyList, _ value: PropertyList, in archive: KeyedArchive) -> String {
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
      return object(type, in: archive)["$classname"]?.string.map { String($0.prefix(80)) } ?? "object"
    }
  }

  /// Returns the numbers of the objects that nothing leads to from the top.
  static func unreached(_ archive: KeyedArchive) -> [Int] {
    // The first one represents nil, whether or not there is a nil.
    var reached: Set<UInt64> = [0]
    var work = archive.top.map(\.value)
    while let value = work.popLast() {
      switch value {
      case .uid(let uid):
        if uid < UInt64(archive.objects.count), reached.insert(uid).inserted { work.append(archive.objects[Int(uid)]) }
      case .array(let elements), .set(let elements): work += elements
      case .dictionary(let entries): work += entries.map(\.value)
      default: break
      }
    }
    return archive.objects.indices.filter { !reached.contains(UInt64($0)) }
  }

  // MARK: Same values

  /// Returns whether two values that contain no others are the same, bit by bit.
  static func isExact(_ old: PropertyList, _ new: PropertyList) -> Bool {
    switch (old, new) {
    case (.number(let a), .number(let b)): a.bitPattern == b.bitPattern
    case (.float(let a), .float(let b)): a.bitPattern == b.bitPattern
    case (.date(let a), .date(let b)):
      a.timeIntervalSinceReferenceDate.bitPattern == b.timeIntervalSinceReferenceDate.bitPattern
    default: old == new
    }
  }

  /// Returns whether two values of fields are the same number, text, date or data.
  static func isSame(_ old: PropertyList, _ new: PropertyList) -> Bool {
    switch old {
    case .float(let value): isExact(.number(Double(value)), new)
    case .bool, .integer, .number, .string, .data, .date: isExact(old, new)
    default: false
    }
  }

  // MARK: Names

  /// Returns each entry with the value of the same key in others; nil if there is none. If a key occurs several times,
  /// the first is matched with the first, and so on.
  static func matched(
    _ entries: [PropertyList.Entry], _ others: [PropertyList.Entry]
  ) -> [(PropertyList.Entry, PropertyList?)] {
    var left: [ExactText: [PropertyList]] = [:]
    for other in others.reversed() { left[ExactText(other.key), default: []].append(other.value) }
    return entries.map { ($0, left[ExactText($0.key)]?.popLast()) }
  }

  /// Returns what is in a dictionary of Foundation's whose keys are texts or whole numbers; nil for any other value.
  func members(of value: PropertyList, in archive: KeyedArchive) -> [PropertyList.Entry]? {
    guard let names = names(of: value, in: archive), let values = value[Self.valuesKey]?.array,
      names.count == values.count
    else { return nil }
    return zip(names, values).map { .init($0.text, $1) }
  }

  /// Returns a dictionary of Foundation's with its pairs in the order of another one that has the same keys: their
  /// order has no meaning.
  func inOrder(of a: PropertyList, _ b: PropertyList) -> PropertyList {
    guard let keys = names(of: a, in: old), let others = names(of: b, in: new), keys != others,
      case .dictionary(let entries) = b, let list = b[Self.keysKey]?.array, let values = b[Self.valuesKey]?.array,
      values.count == others.count
    else { return b }
    let places = Dictionary(others.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
    let order = keys.compactMap { places[$0] }
    guard order.count == others.count, Set(order).count == others.count else { return b }
    return .dictionary(
      entries.map { entry in
        switch entry.key {
        case Self.keysKey: .init(entry.key, .array(order.map { list[$0] }))
        case Self.valuesKey: .init(entry.key, .array(order.map { values[$0] }))
        default: entry
        }
      })
  }

  /// Returns the keys of a dictionary of Foundation's as text, if they are texts or whole numbers.
  private func names(of value: PropertyList, in archive: KeyedArchive) -> [ExactText]? {
    guard let keys = value[Self.keysKey]?.array else { return nil }
    var names: [ExactText] = []
    for key in keys {
      switch resolved(key, in: archive) {
      case .string(let text): names.append(ExactText(text))
      case .integer(let number): names.append(ExactText("\(number)"))
      default: return nil
      }
    }
    return names
  }
}
#endif
