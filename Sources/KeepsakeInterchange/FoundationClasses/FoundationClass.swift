import Foundation

/// One of the classes of Foundation, AppKit or UIKit that keyed archives are full of: all that is known of it, in one place.
///
/// As which keys their values are saved isn't documented by Apple: it was read from real files, and from what Foundation on Linux writes.
/// Who reads or writes archives asks for a class by its name or by the content that it is for, and knows none by itself.
struct FoundationClass: Sendable {
  /// What objects of it are called. The first name is the one that is written; the others have the same keys: a mutable class, another
  /// platform's. A subclass that somebody wrote has more than its superclass: it isn't among them.
  let names: [String]
  /// The classes between it and NSObject, the next one above first, as they are written.
  var superclasses: [String] = []
  /// What an object of it is; nil for one that doesn't have what its class has.
  let read: @Sendable (FoundationObject) throws -> KeyedContent?
  /// The object for a content, under the keys of the class; nil for a content that another class is for. Absent where a class is only read, and what
  /// it held is written as the plainest class that has the same.
  var write: (@Sendable (KeyedContent, inout KeyedObjectTable) -> [PropertyList.Entry]?)?

  /// All that are known: `docs/INTERCHANGE.md` says what becomes of them.
  static let all: [FoundationClass] = [
    .string, .attributedString, .data, .date, .uuid, .url, .null, .number, .decimalNumber, .array, .set, .orderedSet, .countedSet,
    .dictionary, .value, .color, .indexPath, .indexSet, .measurement,
  ]

  /// Those that contents are written as.
  static let written = all.filter { $0.write != nil }

  private static let byName = Dictionary(all.flatMap { known in known.names.map { ($0, known) } }, uniquingKeysWith: { first, _ in first })

  /// The name that is written.
  var name: String { names[0] }

  /// The class of a name in an archive; nil for one that isn't known.
  static func named(_ name: String) -> FoundationClass? { byName[name] }
}

/// An object of one of Foundation's classes in an archive, with what its class needs to read it.
struct FoundationObject {
  let archive: KeyedArchive
  let name: KeyedArchive.ClassName
  let list: PropertyList

  subscript(key: String) -> PropertyList? { list[key] }

  /// Its values, without its class.
  var entries: [PropertyList.Entry] { (list.dictionary ?? []).filter { $0.key != "$class" } }

  /// The value itself, or the object that it refers to. Not farther: a forged archive may lead in circles.
  func part(_ value: PropertyList?) throws -> PropertyList? {
    guard let uid = value?.uid else { return value }
    return uid == 0 ? nil : try archive.object(uid)
  }

  /// The text of a value, or of the NSString that it refers to.
  func text(_ value: PropertyList?) throws -> String? {
    let part = try part(value)
    return part?.string ?? part?["NS.string"]?.string
  }

  /// Numbers of seven bits a byte, the lowest first; the last byte of each is below 128. nil if the data is something else.
  func packedNumbers(_ value: PropertyList?) throws -> [Int]? {
    let object = try part(value)
    guard let data = try object?.data ?? part(object?["NS.data"])?.data else { return nil }
    var numbers: [Int] = []
    var (number, shift) = (UInt64(0), UInt64(0))
    for byte in data {
      let bits = UInt64(byte & 0x7F)
      guard shift < 64, (bits << shift) >> shift == bits else { return nil }
      number |= bits << shift
      shift += 7
      guard byte < 0x80 else { continue }
      guard let whole = Int(exactly: number) else { return nil }
      numbers.append(whole)
      (number, shift) = (0, 0)
    }
    return shift == 0 ? numbers : nil
  }

  /// Subclasses of Foundation's archiver save each element under a key of its own: `NS.object.0` and so on.
  func numbered(_ key: String) -> [PropertyList] {
    let byKey = PropertyList.index(list.dictionary ?? [])
    var elements: [PropertyList] = []
    while let element = byKey[key + "\(elements.count)"] { elements.append(element) }
    return elements
  }
}
