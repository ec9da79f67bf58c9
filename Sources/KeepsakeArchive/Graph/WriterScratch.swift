/// The tables that a writer fills with what it meets, kept from one archive to the next.
///
/// Fresh memory costs more than filling it: the system hands it out page by page, each cleared. One set of large tables is kept for
/// the whole process; writers at work at the same time make their own.
final class WriterScratch {
  /// An object that was written: its place in the sections tells where it goes if the order must change.
  struct Written: BitwiseCopyable {
    var id: Int32
    var type: Int32
    var values: Int
    var references: Int
  }

  /// The object at a position can be built only after the object of that number.
  struct Need: BitwiseCopyable {
    var position: Int32
    var id: Int32
  }

  /// By number. Holding them keeps their addresses from being reused by temporary objects.
  @exclusivity(unchecked) var objects = RawList<Unmanaged<AnyObject>>()
  @exclusivity(unchecked) var identity = IdentityTable()
  @exclusivity(unchecked) var written = RawList<Written>()
  @exclusivity(unchecked) var needs = RawList<Need>()

  /// More than this isn't kept: one large archive must not hold memory for ever.
  private static let mostBytes = 2 << 20
  /// Up to this, each type's writer keeps its own.
  private static let smallBytes = 64 << 10

  private static let large = IdleSlot<WriterScratch>()

  init() {}

  private var byteCount: Int { objects.byteCount + identity.byteCount + written.byteCount + needs.byteCount }

  /// Takes over the large tables of an earlier archive, if so many bytes of archive are expected that they are worth it.
  func prepare(for bytes: Int) {
    if bytes > Self.smallBytes, let large = Self.large.take() { swapTables(with: large) }
  }

  /// Lets the objects go. Large tables are handed to the next writer of a large archive, unless somebody else has done so.
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
    if bytes <= Self.mostBytes { Self.large.giveBack(other) }
  }

  private func swapTables(with other: WriterScratch) {
    swap(&objects, &other.objects)
    swap(&identity, &other.identity)
    swap(&written, &other.written)
    swap(&needs, &other.needs)
  }
}
