public import Foundation
import KeepsakeArchive

/// A file written by Apple's `NSKeyedArchiver`: objects with the names of their classes and their values by key, as
/// games in Objective-C saved them.
///
///     let hero = try KeyedArchive.decode(GameObject.self, from: bytes, classes: ["GameObject": GameObject.self])
///
///     let archive = try KeyedArchive(bytes)                 // without the types that wrote it
///     print(try archive.tree().top["root"])
///
/// Works on every platform, without the classes that wrote the file and without Foundation's unarchiver, which ends the
/// process for some damaged files. Objects are only decoded as types that the caller names.
public struct KeyedArchive: Sendable {
  /// A class as the file describes it.
  public struct ClassName: Sendable, Hashable {
    /// The name in the program that wrote the archive; for a Swift class with its module as a prefix: `Game.Hero`.
    public var name: String
    /// The class and its superclasses, usually up to `NSObject`.
    public var ancestry: [String]
    /// Classes that a reader may use instead.
    public var hints: [String]
  }

  /// The writer's name in the file, usually `NSKeyedArchiver`.
  public let archiver: String
  /// The values at the top by key, usually one under `root`. A UID is an index into `objects`.
  public let top: [PropertyList.Entry]
  /// The objects in the order of the file; the first represents nil.
  public let objects: [PropertyList]

  /// Reads a keyed archive, binary or XML. Decodes none of its objects.
  ///
  /// - Parameters:
  ///   - data: The bytes of the file.
  ///   - limits: The limits that the file must keep.
  /// - Throws: `PropertyListError`: `notAKeyedArchive` for other property lists, `unsupported` for another version, and
  ///   the errors of `PropertyList`.
  public init(_ data: Data, limits: PropertyListLimits = .standard) throws {
    try self.init(PropertyList(data, limits: limits))
  }

  /// Creates the archive from a property list that has already been read.
  ///
  /// - Parameter list: The property list.
  /// - Throws: `PropertyListError` with `notAKeyedArchive` for other property lists, or `unsupported` for another
  ///   version.
  public init(_ list: PropertyList) throws {
    guard case .array(let objects) = list["$objects"], case .dictionary(let top) = list["$top"],
      let archiver = list["$archiver"]?.string
    else {
      throw PropertyListError(
        .notAKeyedArchive, "The property list is not a keyed archive: it doesn't have $archiver, $objects and $top")
    }
    guard list["$version"] == .integer(Self.version) else {
      throw PropertyListError(
        .unsupported, "The keyed archive doesn't have version \(Self.version), the only one that exists")
    }
    self.archiver = archiver
    self.top = top
    self.objects = objects
  }

  static let version: Int128 = 100_000
  static let null = "$null"
  static let root = "root"

  // MARK: Objects

  /// Returns the object with a number. Throws `damaged` if there is none.
  func object(_ uid: UInt64) throws -> PropertyList {
    guard uid < UInt64(objects.count) else {
      throw PropertyListError(
        .damaged,
        """
        A reference points to object \(uid), but the file has only \(PrintableText.count(objects.count, "object")), \
        numbered from 0: the file was altered
        """)
    }
    return objects[Int(uid)]
  }

  /// Returns the class of an object; nil for a value without a class.
  func className(of object: PropertyList) throws -> ClassName? {
    guard let reference = object["$class"] else { return nil }
    guard let uid = reference.uid, case .dictionary(let entries) = try self.object(uid),
      entries.count <= Self.mostAncestors
    else {
      throw PropertyListError(
        .damaged, "An object's $class doesn't refer to the description of a class: the file was altered")
    }
    let description = try self.object(uid)
    guard let name = description["$classname"]?.string else {
      throw PropertyListError(.damaged, "An object's class (object \(uid)) has no name: the file was altered")
    }
    // Some writers omit the superclasses.
    let list = description["$classes"] ?? .array([.string(name)])
    guard let ancestry = list.array, ancestry.count <= Self.mostAncestors else {
      throw PropertyListError(
        .damaged,
        "The superclasses of \(name) aren't a list of at most \(Self.mostAncestors) names: the file was altered")
    }
    let names = try ancestry.map { above in
      guard let name = above.string else {
        throw PropertyListError(
          .damaged, "The names of the superclasses of \(name) aren't all strings: the file was altered")
      }
      return name
    }
    let hints = description["$classhints"]?.array ?? []
    guard hints.count <= Self.mostAncestors else {
      throw PropertyListError(
        .damaged,
        "The list of classes that may replace \(name) has more than \(Self.mostAncestors) names: the file was altered")
    }
    return ClassName(name: name, ancestry: names, hints: hints.compactMap(\.string))
  }

  /// The maximum number of superclasses, of hints, and of entries in a class's record. Real hierarchies have a dozen
  /// superclasses at most, and records three entries. Each object has its own copy.
  private static let mostAncestors = 64
}
