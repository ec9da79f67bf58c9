import Foundation

/// One of the classes of Foundation, AppKit or UIKit that are common in keyed archives. Everything about the class is
/// in one place.
///
/// Apple doesn't document the keys of their values; these were found in real files and in what Foundation on Linux
/// writes. Readers and writers of archives look up a class by its name or by a content, and contain no knowledge of
/// single classes.
struct FoundationClass: Sendable {
  /// The names of the class. The first is the one that is written; the others have the same keys, such as a mutable
  /// class, or another platform's. Custom subclasses aren't included, because they have more values than their
  /// superclass.
  let names: [String]
  /// The classes between it and NSObject, its direct superclass first, as they are written.
  var superclasses: [String] = []
  /// Returns the content of an object; nil for one that lacks the values of the class.
  let read: @Sendable (FoundationObject) throws -> KeyedContent?
  /// Returns the object for a content, under the keys of the class; nil for a content of another class. nil if the
  /// class is only read; its contents are then written as the plainest class that has the same values.
  var write: (@Sendable (KeyedContent, inout KeyedObjectTable) -> [PropertyList.Entry]?)?

  /// All supported classes. `docs/INTERCHANGE.md` describes what they become.
  static let all: [FoundationClass] = [
    .string, .attributedString, .data, .date, .uuid, .url, .null, .number, .decimalNumber, .array, .set, .orderedSet,
    .countedSet,
    .dictionary, .value, .color, .indexPath, .indexSet, .measurement,
  ]

  /// The classes as which contents are written.
  static let written = all.filter { $0.write != nil }

  /// How the keys of all of these classes begin.
  static let keyPrefixes = ["NS", "UI"]

  private static let byName = Dictionary(
    all.flatMap { known in known.names.map { ($0, known) } }, uniquingKeysWith: { first, _ in first })

  /// The name that is written.
  var name: String { names[0] }

  /// Returns the class with a name in an archive; nil if it isn't supported.
  static func named(_ name: String) -> FoundationClass? { byName[name] }
}

/// An object of one of Foundation's classes in an archive, with everything needed to read it.
struct FoundationObject {
  let archive: KeyedArchive
  let name: KeyedArchive.ClassName
  let list: PropertyList

  subscript(key: String) -> PropertyList? { list[key] }

  /// The object's values, without its class.
  var entries: [PropertyList.Entry] { (list.dictionary ?? []).filter { $0.key != "$class" } }

  /// Returns the value itself, or the object that it refers to. Only one level, because a forged archive may have
  /// cycles.
  func part(_ value: PropertyList?) throws -> PropertyList? {
    guard let uid = value?.uid else { return value }
    return uid == 0 ? nil : try archive.object(uid)
  }

  /// Returns the text of a value, or of the NSString that it refers to.
  func text(_ value: PropertyList?) throws -> String? {
    let part = try part(value)
    return part?.string ?? part?["NS.string"]?.string
  }

  /// Returns numbers packed in seven bits per byte, the lowest bits first; the last byte of each number is below 128.
  /// nil if the data is something else.
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

  /// Returns elements from consecutively numbered keys, `NS.object.0` and so on, as written by subclasses of
  /// Foundation's archiver.
  func numbered(_ key: String) -> [PropertyList] {
    let byKey = PropertyList.index(list.dictionary ?? [])
    var elements: [PropertyList] = []
    while let element = byKey[key + "\(elements.count)"] { elements.append(element) }
    return elements
  }
}
