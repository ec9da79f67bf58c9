/// The tables that a writer fills while it writes, reused for the next archive.
///
/// Allocating memory costs more than filling it, because the system provides it page by page and clears each. One set
/// of large tables is kept for the whole process; writers that work at the same time create their own.
final class WriterScratch {
  /// An object that was written. The start of its bytes in both sections is needed if the order must change.
  struct Written: BitwiseCopyable {
    var id: Int32
    var type: Int32
    var values: Int
    var references: Int
  }

  /// A dependency: the object at `position` can be built only after the object with the number `id`.
  struct Need: BitwiseCopyable {
    var position: Int32
    var id: Int32
  }

  /// The objects by their numbers. They are retained, so that temporary objects can't reuse their addresses.
  @exclusivity(unchecked) var objects = RawList<Unmanaged<AnyObject>>()
  @exclusivity(unchecked) var identity = IdentityTable()
  @exclusivity(unchecked) var written = RawList<Written>()
  @exclusivity(unchecked) var needs = RawList<Need>()

  /// Tables larger than this aren't kept, so that one large archive doesn't hold memory forever.
  private static let mostBytes = 2 << 20
  /// Up to this size, the writer of each type keeps its own tables.
  private static let smallBytes = 64 << 10

  private static let large = IdleSlot<WriterScratch>()

  init() {}

  private var byteCount: Int { objects.byteCount + identity.byteCount + written.byteCount + needs.byteCount }

  /// Takes the large tables of an earlier archive if the expected size of the archive makes that worthwhile.
  func prepare(for bytes: Int) {
    if bytes > Self.smallBytes, let large = Self.large.take() { swapTables(with: large.takeRetainedValue()) }
  }

  /// Releases the objects. Large tables are passed on to the next writer of a large archive, unless another writer has
  /// already left its tables.
  func finish() {
    for object in objects.elements { object.release() }
    objects.removeAll()
    identity.removeAll()
    written.removeAll()
    needs.removeAll()
    let bytes = byteCount
    guard bytes > Self.smallBytes else { return }
    let other = WriterScratch()
    swapTables(with: other)
    if bytes <= Self.mostBytes { Self.large.giveBack(.passRetained(other)) }
  }

  private func swapTables(with other: WriterScratch) {
    swap(&objects, &other.objects)
    swap(&identity, &other.identity)
    swap(&written, &other.written)
    swap(&needs, &other.needs)
  }
}
