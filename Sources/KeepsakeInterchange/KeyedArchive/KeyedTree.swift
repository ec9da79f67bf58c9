public import KeepsakeArchive

/// A keyed archive as archive values, which can be shown and compared without the types that wrote it.
///
/// Texts, numbers, dates and collections of Foundation are values. An object of any other class is a `reference`, an
/// index into `objects`. So is a collection with several references to it, or one that contains itself; so sharing and
/// cycles are preserved.
public struct KeyedTree: Sendable, Equatable {
  /// An object with its saved values.
  public struct Object: Sendable, Equatable {
    /// An index into `classes`.
    public var type: Int
    /// The fields in the file's order. For a collection, a single field `NS.objects`.
    public var fields: [ArchiveValue.Field]
  }

  /// The key of the single field of an object that is a collection.
  package static let collectionKey = "NS.objects"

  /// Each class once. The type of a `structure` in a value is an index into this list.
  public internal(set) var classes: [KeyedArchive.ClassName] = []
  /// The objects; a reference in a value is an index into them.
  public internal(set) var objects: [Object] = []
  /// The values at the top by key.
  public internal(set) var top: [String: ArchiveValue] = [:]
}

extension KeyedArchive {
  /// Returns the whole archive as values. Takes time and memory in proportion to the file.
  ///
  /// - Parameter limits: Only its `values` is used: the maximum number of values in the tree.
  /// - Returns: The tree.
  /// - Throws: `PropertyListError` with `damaged` for references to objects that don't exist and for invalid
  ///   descriptions of classes, or with `limit`.
  public func tree(limits: PropertyListLimits = .standard) throws -> KeyedTree {
    var builder = KeyedTreeBuilder(self, limits, isExact: false)
    return try builder.build()
  }

  /// Returns the archive as values from which it can be written again, object by object: an object of Foundation's is a
  /// value only if its class, written anew, has the same fields; any other is an object with the fields that it has.
  /// Values marked as ``ArchiveMark/inPlace`` and ``ArchiveMark/boxed`` are stored otherwise than usual. Costs and
  /// errors are those of ``tree(limits:)``.
  package func exactTree(limits: PropertyListLimits = .standard) throws -> KeyedTree {
    var builder = KeyedTreeBuilder(self, limits, isExact: true)
    return try builder.build()
  }
}
