import Foundation
import Synchronization

/// The description of everything that a root type leads to, created once per process and root type.
///
/// Its bytes begin the footer of each archive with that root, so that "same schema" is a single comparison. Safe to
/// share: after `init`, only an atomic number and the idle objects for the next archive change, and each of those is
/// taken by one caller only. Its metatypes are used only while the same root type is encoded or decoded, under that
/// type's own isolation.
final class CompiledSchema: @unchecked Sendable {
  let schema: ArchiveSchema
  let typeCount: Int
  let root: Int32
  let bytes: [UInt8]
  /// The footer up to the lengths of the sections, for an archive that has no types or keys from hand-written values.
  let footerHead: UnsafeRawBufferPointer
  let problem: ArchiveError?
  /// The size of the last archive. Allocating that much up front avoids growing, and memory that is freed and allocated
  /// again in the same size is already mapped by the process.
  private let lastBytes = Atomic<Int>(0)
  /// The last archive's writer, and the reader for archives of few objects. For a small value, creating one would take
  /// longer than encoding.
  let idleWriter = IdleSlot<WriterCore>()
  let idleReader = IdleSlot<ReaderCore>()

  /// The maximum of `expectedBytes`; beyond it, buffers grow. One large archive must not make all later ones of its
  /// type allocate as much.
  private static let mostExpectedBytes = 64 << 20

  private init<V: Archivable>(_ type: V.Type) {
    schema = ArchiveSchema()
    root = schema.node(of: type)
    schema.markDeferred()
    problem = schema.problem
    typeCount = schema.types.count
    bytes = schema.encoded(from: 0)
    var head: [UInt8] = []
    Varint.append(UInt64(typeCount), to: &head)
    Varint.append(UInt64(bytes.count), to: &head)
    head += bytes
    Varint.append(0, to: &head)
    schema.appendExpression(root, to: &head)
    Varint.append(0, to: &head)
    Varint.append(0, to: &head)
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: head.count, alignment: 1)
    copy.copyBytes(from: head)
    footerHead = UnsafeRawBufferPointer(copy)
  }

  deinit { footerHead.deallocate() }

  static func of<V: Archivable>(_ type: V.Type) throws -> CompiledSchema { try kept(type).takeUnretainedValue() }

  /// Returns the schema without retaining it, which would take a small value longer than finding it.
  static func kept<V: Archivable>(_ type: V.Type) throws -> Unmanaged<CompiledSchema> {
    let compiled = SchemaCache.shared.schema(for: ObjectIdentifier(type)) { CompiledSchema(type) }
    try compiled._withUnsafeGuaranteedRef { if let problem = $0.problem { throw problem } }
    return compiled
  }

  /// Returns whether an archive's footer begins with exactly this description.
  func isHead(of footer: UnsafeRawBufferPointer) -> Bool {
    guard let base = footer.baseAddress, let head = footerHead.baseAddress, footer.count >= footerHead.count else {
      return false
    }
    return memcmp(head, base, footerHead.count) == 0
  }

  /// Returns whether an archive's types and root are these, apart from what hand-written values add.
  func isSame(types: Slice<UnsafeRawBufferPointer>, root saved: Slice<UnsafeRawBufferPointer>) -> Bool {
    var expression: [UInt8] = []
    schema.appendExpression(root, to: &expression)
    return types.elementsEqual(bytes) && saved.elementsEqual(expression)
  }

  var expectedBytes: Int { lastBytes.load(ordering: .relaxed) }

  func recordSize(_ bytes: Int) { lastBytes.store(min(bytes, Self.mostExpectedBytes), ordering: .relaxed) }
}

/// The schemas created so far. Found without a lock: each bucket has a chain of nodes, to which nodes are only added.
///
/// Nodes and schemas are never freed; a process has one of each per root type. That makes it safe to share.
private final class SchemaCache: @unchecked Sendable {
  private struct Node {
    let id: ObjectIdentifier
    let schema: Unmanaged<CompiledSchema>
    let next: UnsafeMutablePointer<Node>?
  }

  static let shared = SchemaCache()
  private static let bucketCount = 256
  private let buckets: UnsafeMutablePointer<Atomic<UnsafeMutablePointer<Node>?>>

  private init() {
    buckets = .allocate(capacity: Self.bucketCount)
    for index in 0..<Self.bucketCount { (buckets + index).initialize(to: Atomic(nil)) }
  }

  func schema(for id: ObjectIdentifier, make: () -> CompiledSchema) -> Unmanaged<CompiledSchema> {
    let bucket = buckets + (Int(bitPattern: id) >> 4) & (Self.bucketCount - 1)
    var head = bucket.pointee.load(ordering: .acquiring)
    if let known = Self.find(id, in: head) { return known }
    let new = Unmanaged.passRetained(make())
    while true {
      let node = UnsafeMutablePointer<Node>.allocate(capacity: 1)
      node.initialize(to: Node(id: id, schema: new, next: head))
      let (done, current) = bucket.pointee.compareExchange(
        expected: head, desired: node, ordering: .acquiringAndReleasing)
      if done { return new }
      node.deallocate()
      head = current
      if let known = Self.find(id, in: head) {
        new.release()
        return known
      }
    }
  }

  private static func find(_ id: ObjectIdentifier, in head: UnsafeMutablePointer<Node>?) -> Unmanaged<CompiledSchema>? {
    var node = head
    while let current = node {
      if current.pointee.id == id { return current.pointee.schema }
      node = current.pointee.next
    }
    return nil
  }
}
