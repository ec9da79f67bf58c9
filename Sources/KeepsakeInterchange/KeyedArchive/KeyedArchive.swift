public import Foundation

/// A file of Apple's `NSKeyedArchiver`: objects with their classes' names and their values by key, as games in Objective-C saved them.
///
///     let hero = try KeyedArchive.decode(GameObject.self, from: bytes, classes: ["GameObject": GameObject.self])
///
///     let archive = try KeyedArchive(bytes)                 // without the types that wrote it
///     print(try archive.tree().top["root"])
///
/// Works on every platform, without the classes that wrote the file and without Foundation's unarchiver, which ends the process for some damaged files. No object
/// is ever made but of the types that the caller names.
public struct KeyedArchive: Sendable {
  /// A class as the file describes it.
  public struct ClassName: Sendable, Hashable {
    /// As the program called it that wrote; of a Swift class with its module in front: `Game.Hero`.
    public var name: String
    /// The class and those above it, mostly up to `NSObject`.
    public var ancestry: [String]
    /// Classes that a reader may take in its place.
    public var hints: [String]
  }

  /// What the file calls its writer: mostly `NSKeyedArchiver`.
  public let archiver: String
  /// The values at the top by key, mostly one under `root`. A UID is an index into `objects`.
  public let top: [PropertyList.Entry]
  /// As they stand in the file; the first stands for nil.
  public let objects: [PropertyList]

  /// Reads a keyed archive, binary or XML.
  ///
  /// - Throws: `PropertyListError`: `notAKeyedArchive` for other property lists, and what `PropertyList` throws.
  public init(_ data: Data, limits: PropertyListLimits = .standard) throws {
    try self.init(PropertyList(data, limits: limits))
  }

  /// The archive in a property list that was read already.
  public init(_ list: PropertyList) throws {
    guard case .array(let objects) = list["$objects"], case .dictionary(let top) = list["$top"], let archiver = list["$archiver"]?.string
    else {
      throw PropertyListError(.notAKeyedArchive, "The property list has no $archiver, $objects and $top: it is no keyed archive")
    }
    guard list["$version"] == .integer(Self.version) else {
      throw PropertyListError(.unsupported, "The keyed archive is not of version \(Self.version), the only one there has been")
    }
    self.archiver = archiver
    self.top = top
    self.objects = objects
  }

  static let version: Int128 = 100_000
  static let null = "$null"
  static let root = "root"

  // MARK: Objects

  /// The object of a number. Throws `damaged` if there is none.
  func object(_ uid: UInt64) throws -> PropertyList {
    guard uid < UInt64(objects.count) else {
      throw PropertyListError(.damaged, "A reference leads to object \(uid), of \(objects.count): the file was altered")
    }
    return objects[Int(uid)]
  }

  /// The class of an object; nil for a value that has none.
  func className(of object: PropertyList) throws -> ClassName? {
    guard let reference = object["$class"] else { return nil }
    guard let uid = reference.uid, case .dictionary(let entries) = try self.object(uid), entries.count <= Self.mostAncestors else {
      throw PropertyListError(.damaged, "The class of an object is not where it is said to be: the file was altered")
    }
    let description = try self.object(uid)
    guard let name = description["$classname"]?.string else {
      throw PropertyListError(.damaged, "An object's class (object \(uid)) has no name: the file was altered")
    }
    // Some writers leave the classes above out.
    let list = description["$classes"] ?? .array([.string(name)])
    guard let ancestry = list.array, ancestry.count <= Self.mostAncestors else {
      throw PropertyListError(.damaged, "The classes above \(name) are no list of some dozens at most: the file was altered")
    }
    let names = try ancestry.map { above in
      guard let name = above.string else {
        throw PropertyListError(.damaged, "The classes above \(name) are no texts: the file was altered")
      }
      return name
    }
    let hints = description["$classhints"]?.array ?? []
    guard hints.count <= Self.mostAncestors else {
      throw PropertyListError(.damaged, "The classes that may stand for \(name) are no list of some dozens at most: the file was altered")
    }
    return ClassName(name: name, ancestry: names, hints: hints.compactMap(\.string))
  }

  /// Real hierarchies have a dozen at most, and a class's record three entries. Each object has its own copy.
  private static let mostAncestors = 64
}
