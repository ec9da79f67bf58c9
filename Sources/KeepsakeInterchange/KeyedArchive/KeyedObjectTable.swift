/// The objects of a keyed archive that is being written. Each has a number; classes and texts are written once.
package struct KeyedObjectTable {
  private var objects: [PropertyList] = [.string(KeyedArchive.null)]
  /// By the names of a class and its superclasses.
  private var classes: [[String]: UInt64] = [:]
  private var texts: [ExactText: UInt64] = [:]

  package init() {}

  /// Reserves a number for an object that is written later, so that its contents may refer to it.
  package mutating func reserve() -> UInt64 {
    objects.append(.null)
    return UInt64(objects.count - 1)
  }

  /// Writes an object. `number` must be reserved.
  package mutating func fill(_ number: UInt64, _ object: PropertyList) { objects[Int(number)] = object }

  /// Returns the number of a text, which is an object.
  package mutating func text(_ text: String) -> UInt64 {
    // The text that represents nil is written as an NSString object.
    if text == KeyedArchive.null, let entries = FoundationClass.string.write?(.string(text), &self) {
      let number = reserve()
      fill(number, object(FoundationClass.string.name, FoundationClass.string.superclasses, entries))
      return number
    }
    if let known = texts[ExactText(text)] { return known }
    let number = reserve()
    texts[ExactText(text)] = number
    fill(number, .string(text))
    return number
  }

  /// Returns an object of a class.
  ///
  /// - Parameter superclasses: The classes between it and NSObject, its direct superclass first.
  package mutating func object(_ name: String, _ superclasses: [String], _ entries: [PropertyList.Entry])
    -> PropertyList
  {
    let names = [name] + superclasses
    let number: UInt64
    if let known = classes[names] {
      number = known
    } else {
      number = reserve()
      classes[names] = number
      fill(number, ["$classname": .string(name), "$classes": .array((names + ["NSObject"]).map { .string($0) })])
    }
    return .dictionary(entries + [.init("$class", .uid(number))])
  }

  /// Returns whether an object of a class may have these fields. One of Foundation's classes with fields of another
  /// kind, such as what it was shown as, would be an object that Foundation can't read.
  package static func mayHave(_ keys: [String], in name: String) -> Bool {
    FoundationClass.named(name) == nil
      || keys.allSatisfy { key in isNumbered(key) || FoundationClass.keyPrefixes.contains { key.hasPrefix($0) } }
  }

  /// Whether a key is the archiver's own for a value that was saved without one, such as `$0` for an object's first; or
  /// a program's that only a `$` more tells from it.
  package static func isNumbered(_ key: String) -> Bool {
    let digits = key.utf8.drop { $0 == UInt8(ascii: "$") }
    return digits.count < key.utf8.count && !digits.isEmpty && digits.allSatisfy { (0x30...0x39).contains($0) }
  }

  /// Returns how an object's key is shown: without the `$` that an archiver puts before a program's key that begins
  /// with one, unless that would be a number.
  package static func shown(_ key: String) -> String {
    key.hasPrefix("$$") && !isNumbered(key) ? String(key.dropFirst()) : key
  }

  /// Returns the object of Foundation's class for a content; nil for a content that is written as a plain value, or
  /// whose class isn't written.
  ///
  /// - Parameter other: The name and superclasses of the class of which the content was an object. It is ignored if it
  ///   is one of Foundation's that is written with other keys, unless `isLiteral`.
  package mutating func object(
    for content: KeyedContent, as other: (name: String, superclasses: [String])? = nil, isLiteral: Bool = false
  ) -> PropertyList? {
    let isOther = other.flatMap { FoundationClass.named($0.name) }.map { $0.write?(content, &self) != nil } ?? true
    let other = isOther || isLiteral ? other : nil
    for known in FoundationClass.written {
      guard let entries = known.write?(content, &self) else { continue }
      return object(other?.name ?? known.name, other?.superclasses ?? known.superclasses, entries)
    }
    return nil
  }

  /// Returns an object that was written; null for a number that isn't there.
  func object(_ number: UInt64) -> PropertyList {
    number < UInt64(objects.count) ? objects[Int(number)] : .null
  }

  /// Returns the names of the class of an object that was written, and of those above it.
  func ancestry(of object: PropertyList) -> [String] {
    object["$class"]?.uid.map { self.object($0)["$classes"]?.array?.compactMap(\.string) ?? [] } ?? []
  }

  /// Returns the property list of the archive.
  package func list(top: [PropertyList.Entry]) -> PropertyList {
    [
      "$version": .integer(KeyedArchive.version), "$archiver": "NSKeyedArchiver", "$top": .dictionary(top),
      "$objects": .array(objects),
    ]
  }

  /// Returns the key for an object's value. An archiver's own keys begin with a $, so another $ is added to values'
  /// keys that do.
  package static func key(_ key: String) -> String { key.hasPrefix("$") ? "$" + key : key }
}
