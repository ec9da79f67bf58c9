import KeepsakeArchive

/// The differences between two archives, field by field.
///
///     let difference = ArchiveDifference(from: yesterday, to: today)
///     print(difference.text())        // characters[3].inventory[0].count: 3 -> 4
///
/// Objects are matched by their class and a field `id`, if that identifies one object on each side, otherwise by how
/// they are reached from the root. List elements are matched by such an `id`, otherwise so that as many as possible
/// stay the same. References are compared by the objects they refer to, not by the numbers that archives give to
/// objects. A number is equal to the same number of another type; the type is then listed under `types`. Equal archives
/// give equal differences on every machine.
///
/// Costs time and memory in proportion to both archives, with a few hundred steps for each element of a list that
/// changed, and at most 16 million further steps for aligning lists. The list of changes is not guaranteed to be the
/// shortest.
public struct ArchiveDifference: Sendable {
  /// One value that differs.
  public struct Change: Sendable, Equatable {
    /// How a value changed.
    public enum Kind: String, Sendable {
      /// Only the second archive has it.
      case added
      /// Only the first archive has it.
      case removed
      /// Both have it, with different values.
      case changed
      /// The elements of a list that are on both sides are in a different order.
      case reordered
    }

    /// How the value changed.
    public var kind: Kind
    /// The path of the value, such as `characters[3].inventory[0].count`; `[3->5]` for an element that moved. If the
    /// path from the root is long, it starts at an object instead, such as `#7 Boss`.
    public var path: String
    /// The old value; nil for added or reordered values.
    public var old: ArchiveValue?
    /// The new value; nil for removed or reordered values.
    public var new: ArchiveValue?
    /// The old value on one line. A reference is shown as the object that it refers to.
    public var oldText: String?
    /// The new value on one line. A reference is shown as the object that it refers to.
    public var newText: String?
  }

  /// One difference between the saved declarations.
  public struct TypeChange: Sendable, Equatable {
    /// How a declaration changed.
    public enum Kind: String, Sendable {
      /// Only the second archive describes the type.
      case typeAdded
      /// Only the first archive describes the type.
      case typeRemoved
      /// The type has another version number.
      case version
      /// The type is of another kind, such as an enum instead of a struct.
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

    /// How the declaration changed.
    public var kind: Kind
    /// The type's name.
    public var type: String
    /// The field, the case, or a field of a case, such as `moved.to`.
    public var member: String?
    /// The declaration in the first archive: a version, a kind or a type, as text.
    public var old: String?
    /// The declaration in the second archive.
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

  /// One of the two archives.
  struct Side: Sendable {
    /// Where it comes from, if that is named.
    var source: InspectedSource?
    /// What it was opened from, outermost first, and that with the archive's format, as text.
    var wrappings: [String]
    var text: String

    init(_ archive: ArchiveInspection) {
      (source, wrappings) = (archive.source, archive.wrappings)
      text = archive.opening + (archive.foreign ?? "archive")
    }
  }

  /// The number of unlisted changes under one path pattern.
  public struct Omission: Sendable, Equatable {
    /// A path without positions, such as `tiles[].kind`.
    public var pattern: String
    /// The number of changes that are not in `changes`.
    public var count: Int
  }

  /// The differences between the saved declarations.
  public let types: [TypeChange]
  /// The differing values, in their order in the archives.
  public let changes: [Change]
  /// Changes that were too many to list.
  public let omitted: [Omission]
  /// Objects that only the first archive has.
  public let removedObjects: [LoneObject]
  /// Objects that only the second archive has.
  public let addedObjects: [LoneObject]
  /// The old and the new archive.
  let sides: [Side]
  /// The objects whose classes differ; nil if only contents are compared.
  package var classes: [ClassChange]?
  /// Differing classes that were too many to list.
  package var omittedClasses: [Omission] = []

  /// Whether the archives have the same contents.
  public var isEmpty: Bool {
    types.isEmpty && changes.isEmpty && omitted.isEmpty && removedObjects.isEmpty && addedObjects.isEmpty
      && classes?.isEmpty ?? true
  }

  /// Compares two archives.
  ///
  /// - Parameters:
  ///   - old: The first archive.
  ///   - new: The second archive.
  ///   - changesPerPattern: The maximum number of changes listed whose paths differ only in positions, such as all of
  ///     `tiles[].kind`.
  ///   - maximumChanges: The maximum number of changes listed in all. The others are counted.
  public init(
    from old: ArchiveInspection, to new: ArchiveInspection, changesPerPattern: Int = 100, maximumChanges: Int = 10_000
  ) {
    sides = [Side(old), Side(new)]
    // Files of other programs have no declarations.
    types = old.foreign == nil && new.foreign == nil ? TypeComparison(old: old, new: new).changes : []
    var finder = DifferenceFinder(old: old, new: new)
    finder.recorder.perPattern = max(changesPerPattern, 0)
    finder.recorder.maximum = max(maximumChanges, 0)
    finder.run()
    changes = finder.recorder.sortedChanges
    omitted = finder.recorder.omitted
    // If one side's format has no objects, the other side's objects are compared in place.
    let isBeside = (old.foreign != nil && old.objects.isEmpty) || (new.foreign != nil && new.objects.isEmpty)
    removedObjects = isBeside ? [] : finder.lone(.old)
    addedObjects = isBeside ? [] : finder.lone(.new)
  }
}
