import KeepsakeArchive

/// What differs between two archives, field by field.
///
///     let difference = ArchiveDifference(from: yesterday, to: today)
///     print(difference.text())        // characters[3].inventory[0].count: 3 -> 4
///
/// Objects are matched by their class and a field `id` where that names one object on each side, else by how they are reached from the
/// root; list elements by such an `id`, else so that as many as possible stay the same. Which object a reference leads to counts,
/// numbers that archives give to objects don't. A number is equal to the same number of another type; the type is then listed under
/// `types`. Equal archives give equal differences on every machine.
///
/// Costs time and memory in proportion to both archives, with a few hundred steps for each element of a list that changed, and at most
/// 16 million steps more for aligning lists. It does not promise the shortest list of changes.
public struct ArchiveDifference: Sendable {
  /// One value that differs.
  public struct Change: Sendable, Equatable {
    /// What became of a value.
    public enum Kind: String, Sendable {
      /// Only the second archive has it.
      case added
      /// Only the first archive has it.
      case removed
      /// Both have it, with different values.
      case changed
      /// The elements of a list that are on both sides stand in another order.
      case reordered
    }

    /// What became of the value.
    public var kind: Kind
    /// As in `characters[3].inventory[0].count`; `[3->5]` for an element that moved; `#7 Boss` stands for the root where the way from
    /// there is long.
    public var path: String
    /// Nil for what was added or reordered.
    public var old: ArchiveValue?
    /// Nil for what was removed or reordered.
    public var new: ArchiveValue?
    /// The old value on one line; a reference shows what it leads to.
    public var oldText: String?
    /// The new value on one line; a reference shows what it leads to.
    public var newText: String?
  }

  /// One difference between the saved declarations.
  public struct TypeChange: Sendable, Equatable {
    /// What became of a declaration.
    public enum Kind: String, Sendable {
      /// Only the second archive describes the type.
      case typeAdded
      /// Only the first archive describes the type.
      case typeRemoved
      /// Another version number.
      case version
      /// A struct became an enum, and the like.
      case kind
      /// Only the second archive has the field.
      case fieldAdded
      /// Only the first archive has the field.
      case fieldRemoved
      /// The field has another type.
      case fieldType
      /// Only the second archive has the enum case.
      case caseAdded
      /// Only the first archive has the enum case.
      case caseRemoved
      /// The archive's root has another type.
      case root
    }

    /// What became of the declaration.
    public var kind: Kind
    /// The type's name.
    public var type: String
    /// The field, the case, or a field of a case as in `moved.to`.
    public var member: String?
    /// How it was declared: a version, a kind or a type, as text.
    public var old: String?
    /// How it is declared now.
    public var new: String?
  }

  /// An object that only one of the archives has.
  public struct LoneObject: Sendable, Equatable {
    /// Its number in its archive.
    public var number: Int
    /// The name of its class.
    public var type: String
    var fields: [ArchiveValue.Field]
  }

  /// How many changes there are at places of one kind.
  public struct Omission: Sendable, Equatable {
    /// A path without the positions, as in `tiles[].kind`.
    public var pattern: String
    /// Those that are not in `changes`.
    public var count: Int
  }

  /// What differs between the saved declarations.
  public let types: [TypeChange]
  /// In the order in which the values stand in the archives.
  public let changes: [Change]
  /// What was too much to list.
  public let omitted: [Omission]
  /// Objects that only the first archive has.
  public let removedObjects: [LoneObject]
  /// Objects that only the second archive has.
  public let addedObjects: [LoneObject]

  /// Whether the archives hold the same.
  public var isEmpty: Bool {
    types.isEmpty && changes.isEmpty && omitted.isEmpty && removedObjects.isEmpty && addedObjects.isEmpty
  }

  /// Compares two archives.
  ///
  /// - Parameters:
  ///   - changesPerPattern: How many changes are kept of those that differ only in positions, such as all of `tiles[].kind`.
  ///   - maximumChanges: How many are kept in all; the others are counted.
  public init(
    from old: ArchiveInspection, to new: ArchiveInspection, changesPerPattern: Int = 100, maximumChanges: Int = 10_000
  ) {
    // Other programs' files declare nothing.
    types = old.foreign == nil && new.foreign == nil ? TypeComparison(old: old, new: new).changes : []
    var finder = DifferenceFinder(old: old, new: new)
    finder.recorder.perPattern = max(changesPerPattern, 0)
    finder.recorder.maximum = max(maximumChanges, 0)
    finder.run()
    changes = finder.recorder.sortedChanges
    omitted = finder.recorder.omitted
    // Beside a file of a format without objects, all of the other's are compared where they stand.
    let isBeside = (old.foreign != nil && old.objects.isEmpty) || (new.foreign != nil && new.objects.isEmpty)
    removedObjects = isBeside ? [] : finder.lone(.old)
    addedObjects = isBeside ? [] : finder.lone(.new)
  }
}
