/// The references that are read of an archive which has objects of classes that the program doesn't have.
///
/// Such objects are skipped. Nothing is lost as long as only skipped properties lead to them, and whether that is so is
/// known only at the end: a property that is read may belong to an object to which only skipped ones lead. So an object
/// that refers to a skipped one is blocked instead of ending the decoding, and so is what refers to that one, and so
/// on. If the root is blocked in the end, decoding fails.
///
/// An archive without such objects has no record, and costs nothing more. With one, each reference that is read takes
/// some 20 bytes, and the blocked objects are skipped as well.
final class ReferenceRecord {
  /// Stands for the root where there may be the number of an object.
  static let root: Int32 = -1
  /// Memory for one reference: its pair of numbers in a growing list, and sorted.
  static let bytesPerReference = 20
  /// Memory of the tables for one object.
  static let bytesPerObject = 32

  private struct Reference: BitwiseCopyable {
    let holder: Int32
    let target: Int32
  }

  private let file: ArchiveSchema
  /// By object number: the index of its class among the archive's types; -1 for an object that isn't saved.
  private let classes: [Int32]
  /// By object number: the index of the unknown class that the object is of, or that keeps it from being given out; -1
  /// for none.
  private var blocks: [Int32]
  private var references = RawList<Reference>()
  /// The object that is being read, or `root`.
  var holder = ReferenceRecord.root
  /// Objects that are referred to without being owned, and what refers to them.
  private(set) var unowned: [(holder: Int32, object: AnyObject)] = []
  /// The last error, because its message takes longer to create than an object takes to read.
  private var lastError: (block: Int32, error: ArchiveError)?

  init(_ file: ArchiveSchema, _ objectCount: Int, _ runs: [ObjectRun]) {
    self.file = file
    var classes = [Int32](repeating: -1, count: objectCount)
    blocks = classes
    for run in runs {
      let type = Int32(truncatingIfNeeded: run.type)
      for id in run.ids {
        classes[Int(id)] = type
        if run.isUnknown { blocks[Int(id)] = type }
      }
    }
    self.classes = classes
  }

  /// Whether the object is of an unknown class, or refers to such an object, directly or through others.
  func isBlocked(_ id: Int32) -> Bool { blocks[Int(id)] >= 0 }

  /// Records a reference of what is being read. Throws if its target is blocked, which blocks what is being read, too:
  /// also if it catches the error, so that nothing is lost unnoticed.
  func request(_ target: Int32) throws {
    references.append(Reference(holder: holder, target: target))
    let block = blocks[Int(target)]
    guard block >= 0 else { return }
    if holder != Self.root { blocks[Int(holder)] = block }
    throw error(block)
  }

  func noteUnowned(_ object: AnyObject) {
    if let last = unowned.last, last.holder == holder, last.object === object { return }
    unowned.append((holder, object))
  }

  /// Returns the unowned objects, and no longer retains them.
  func takeUnowned() -> [(holder: Int32, object: AnyObject)] {
    defer { unowned = [] }
    return unowned
  }

  /// Blocks everything that leads to a blocked object. Throws if that includes the root. Linear in the number of
  /// objects and references.
  func resolve() throws {
    var starts = [Int](repeating: 0, count: blocks.count + 1)
    for reference in references.elements { starts[Int(reference.target) + 1] += 1 }
    for index in blocks.indices { starts[index + 1] += starts[index] }
    var fill = starts
    var holders = [Int32](repeating: 0, count: references.count)
    for reference in references.elements {
      holders[fill[Int(reference.target)]] = reference.holder
      fill[Int(reference.target)] += 1
    }
    var waiting = blocks.indices.filter { blocks[$0] >= 0 }
    while let target = waiting.popLast() {
      for holder in holders[starts[target]..<starts[target + 1]] {
        guard holder != Self.root else { throw error(blocks[target], in: classes[target]) }
        guard blocks[Int(holder)] < 0 else { continue }
        blocks[Int(holder)] = blocks[target]
        waiting.append(Int(holder))
      }
    }
  }

  /// - Parameter type: The class of the object that leads to the missing one; the unknown class itself if it is the
  ///   root that refers to it.
  private func error(_ block: Int32, in type: Int32) -> ArchiveError {
    var error = error(block)
    if type != block { error.type = file.text(file.types[Int(type)].node) }
    return error
  }

  private func error(_ block: Int32) -> ArchiveError {
    if let lastError, lastError.block == block { return lastError.error }
    let entry = file.types[Int(block)]
    let (name, isHandWritten) = (file.text(entry.node), entry.kind.isKeyed)
    // The name is declared without generic arguments.
    let declaration = isHandWritten ? "archiveName" : "@Archivable(name: \"\(name.prefix { $0 != "<" })\")"
    let error = ArchiveError(
      .unknownClass,
      """
      The archive has objects of the class \(name), which the program doesn't list. If the class was renamed, declare \
      its old name with \(declaration); if it is a subclass, add it to its superclass's \
      \(isHandWritten ? "archiveSubclasses" : "subclasses:"); if only migrate(_:) or hand-written code reads it, add \
      it to the archiveSubclasses of a struct, or to classes:
      """)
    lastError = (block, error)
    return error
  }
}

extension ReaderCore {
  /// Reads something of an object that was built, unless it is blocked, or becomes so.
  func recording(_ id: Int32, _ body: () throws -> Void) throws {
    guard let record else { return try body() }
    guard !record.isBlocked(id) else { return }
    record.holder = id
    do {
      try body()
    } catch {
      // What the object needs isn't there. That matters only if the root leads to it: see `resolve`.
      guard record.isBlocked(id) else { throw error }
    }
  }
}

extension ArchiveReader {
  /// As `takeObject`, while references are recorded; throws for a number that no object has.
  @inline(never) mutating func takeRecordedObject(_ number: UInt64, mustExist: Bool) throws -> AnyObject? {
    guard let record = core.record, number > 0, number <= UInt64(core.objectCount) else {
      throw damaged("A reference points to an object that doesn't exist")
    }
    let id = Int32(truncatingIfNeeded: number) - 1
    try core.memory.claim(1, of: ReferenceRecord.bytesPerReference, at: offset)
    try record.request(id)
    let object = core.object(id)
    guard object != nil || !mustExist else { throw damaged("A reference points to an object that isn't built yet") }
    return object?.takeUnretainedValue()
  }
}
