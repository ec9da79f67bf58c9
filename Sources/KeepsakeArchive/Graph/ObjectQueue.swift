/// The objects of one class that were met and are still to be written.
///
/// The class is opened once, here; the loop over its objects is statically dispatched.
class ObjectQueue {
  let typeIndex: Int
  @exclusivity(unchecked) final var ids = RawList<Int32>()
  @exclusivity(unchecked) final var next = 0
  @exclusivity(unchecked) final var isListed = false

  init(typeIndex: Int) { self.typeIndex = typeIndex }

  func drain(_ writer: inout ArchiveWriter) throws {}
  func writeFingerprint(of object: AnyObject, to writer: inout ArchiveWriter) throws {}

  static func make(_ type: any (Archivable & AnyObject).Type, typeIndex: Int) -> ObjectQueue {
    func open<T: Archivable & AnyObject>(_: T.Type) -> ObjectQueue { TypedObjectQueue<T>(typeIndex: typeIndex) }
    return open(type)
  }
}

private final class TypedObjectQueue<T: Archivable & AnyObject>: ObjectQueue {
  /// All that are waiting, first their values, then their references, until writing those finds no more of this class.
  override func drain(_ writer: inout ArchiveWriter) throws {
    let core = writer.core
    let entry = core.schema.types[typeIndex]
    let isKeyed = entry.kind.isKeyed
    writer.deferred = FieldMask(entry.fields.map(\.deferred))
    let hasReferences = isKeyed || !writer.deferred.isEmpty
    while next < ids.count {
      let batch = next..<ids.count
      next = batch.upperBound
      let firstPosition = core.writtenCount
      for index in batch {
        let id = ids[index]
        core.begin(id, type: typeIndex, values: writer.offset, references: writer.otherOffset)
        writer.fieldBase = 0
        try withObject(id, core) { object in
          if isKeyed { try writer.writeKeyedBody { try object.encode(to: &$0) } } else { try object.encode(to: &writer) }
        }
      }
      core.buildsObject = false
      guard hasReferences else { continue }
      writer.swapSections()
      for index in batch {
        core.noteReferences(position: firstPosition + index - batch.lowerBound, at: writer.offset)
        writer.fieldBase = 0
        try withObject(ids[index], core) { object in
          if isKeyed {
            try writer.writeKeyedBody { try object.encodeReferences(to: &$0) }
          } else {
            try object.encodeReferences(to: &writer)
          }
        }
      }
      writer.swapSections()
    }
  }

  /// Queues hold only objects whose dynamic class is exactly T, and the core holds the objects.
  @inline(__always) private func withObject(_ id: Int32, _ core: WriterCore, _ body: (T) throws -> Void) rethrows {
    try core.object(id)._withUnsafeGuaranteedRef { try body(unsafeDowncast($0, to: T.self)) }
  }

  override func writeFingerprint(of object: AnyObject, to writer: inout ArchiveWriter) throws {
    let entry = writer.core.schema.types[typeIndex]
    let outer = (writer.deferred, writer.fieldBase)
    defer { (writer.deferred, writer.fieldBase) = outer }
    writer.deferred = FieldMask(entry.fields.map(\.deferred))
    writer.fieldBase = 0
    let typed = unsafeDowncast(object, to: T.self)
    if entry.kind.isKeyed { try writer.writeKeyedBody { try typed.encode(to: &$0) } } else { try typed.encode(to: &writer) }
  }
}
