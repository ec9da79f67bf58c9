/// The objects of a keyed archive that is written: each has a number, classes and texts are written once.
package struct KeyedObjectTable {
  private var objects: [PropertyList] = [.string(KeyedArchive.null)]
  /// By the names of a class and of those above it.
  private var classes: [[String]: UInt64] = [:]
  private var texts: [ExactText: UInt64] = [:]

  package init() {}

  /// A number for an object that is written later, so that what is inside of it may refer to it.
  package mutating func reserve() -> UInt64 {
    objects.append(.null)
    return UInt64(objects.count - 1)
  }

  /// - Precondition: `number` was reserved.
  package mutating func fill(_ number: UInt64, _ object: PropertyList) { objects[Int(number)] = object }

  /// The number of the object that a text is.
  package mutating func text(_ text: String) -> UInt64 {
    // What stands for nil takes the long way.
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

  /// An object of a class.
  ///
  /// - Parameter superclasses: Those between it and NSObject, the next one above first.
  package mutating func object(_ name: String, _ superclasses: [String], _ entries: [PropertyList.Entry]) -> PropertyList {
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

  /// The object of Foundation's class for a content; nil for what stands for itself, or has no class that is written.
  ///
  /// - Parameter other: The name of a class with the same keys, and of those above it, for what was an object of that one.
  package mutating func object(for content: KeyedContent, as other: (name: String, superclasses: [String])? = nil) -> PropertyList? {
    for known in FoundationClass.written {
      guard let entries = known.write?(content, &self) else { continue }
      return object(other?.name ?? known.name, other?.superclasses ?? known.superclasses, entries)
    }
    return nil
  }

  /// The archive.
  package func list(top: [PropertyList.Entry]) -> PropertyList {
    [
      "$version": .integer(KeyedArchive.version), "$archiver": "NSKeyedArchiver", "$top": .dictionary(top), "$objects": .array(objects),
    ]
  }

  /// The key of an object's value. An archiver's own keys begin with a $; those of an object get another one in front.
  package static func key(_ key: String) -> String { key.hasPrefix("$") ? "$" + key : key }
}
