/// The objects of one class that were met and are still to be written.
///
/// The class is opened once, here; the loop over its objects is statically dispatched.
class ObjectQueue {
  let typeIndex: Int
  @exclusivity(unchecked) final var ids: [Int32] = []
  @exclusivity(unchecked) final var next = 0
  @exclusivity(unchecked) final var isListed = false

  init(typeIndex: Int) { self.typeIndex = typeIndex }

  func drain(_ writer: inout ArchiveWriter) throws {}
  func writeFingerprint(of object: AnyObject, to writer: inout ArchiveWriter) throws {}

  static func make(_ type: any Archivable.Type, typeIndex: Int) -> ObjectQueue {
    func open<T: Archivable>(_: T.Type) -> ObjectQueue { TypedObjectQueue<T>(typeIndex: typeIndex) }
    return open(type)
  }
}

private final class TypedObjectQueue<T: Archivable>: ObjectQueue {
  override func drain(_ writer: inout ArchiveWriter) throws {
    let core = writer.core
    let entry = core.schema.types[typeIndex]
    let isKeyed = entry.kind.isKeyed
    writer.deferred = entry.fields.map(\.deferred)
    let hasReferences = isKeyed || writer.deferred.contains(true)
    while next < ids.count {
      let id = ids[next]
      next += 1
      // Queues hold only objects whose dynamic class is exactly T.
      let object = unsafeBitCast(core.objects[Int(id)], to: T.self)
      core.begin(id, values: writer.offset, references: writer.otherOffset)
      writer.fieldBase = 0
      if isKeyed { try writer.writeKeyedBody { try object.encode(to: &$0) } } else { try object.encode(to: &writer) }
      core.buildsObject = false
      guard hasReferences else { continue }
      writer.fieldBase = 0
      writer.swapSections()
      if isKeyed {
        try writer.writeKeyedBody { try object.encodeReferences(to: &$0) }
      } else {
        try object.encodeReferences(to: &writer)
      }
      writer.swapSections()
    }
  }

  override func writeFingerprint(of object: AnyObject, to writer: inout ArchiveWriter) throws {
    let entry = writer.core.schema.types[typeIndex]
    let outer = (writer.deferred, writer.fieldBase)
    defer { (writer.deferred, writer.fieldBase) = outer }
    writer.deferred = entry.fields.map(\.deferred)
    writer.fieldBase = 0
    let typed = unsafeBitCast(object, to: T.self)
    if entry.kind.isKeyed { try writer.writeKeyedBody { try typed.encode(to: &$0) } } else { try typed.encode(to: &writer) }
  }
}
