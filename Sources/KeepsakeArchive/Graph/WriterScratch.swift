import Synchronization

/// The tables that a writer fills with what it meets, kept from one archive to the next.
///
/// Fresh memory costs more than filling it: the system hands it out page by page, each cleared. One set of tables is kept for the
/// whole process; writers at work at the same time make their own.
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

  /// The address of the one that is kept, which owns a reference to it; 0 for none.
  private static let kept = Atomic<UInt>(0)

  private init() {}

  static func take() -> WriterScratch {
    guard let pointer = UnsafeRawPointer(bitPattern: kept.exchange(0, ordering: .acquiring)) else { return WriterScratch() }
    return Unmanaged<WriterScratch>.fromOpaque(pointer).takeRetainedValue()
  }

  /// Lets the objects go and keeps the tables for the next writer, if nobody else has kept some.
  func giveBack() {
    for object in objects.elements { object.release() }
    objects.removeAll()
    identity.removeAll()
    written.removeAll()
    needs.removeAll()
    guard objects.byteCount + identity.byteCount + written.byteCount + needs.byteCount <= Self.mostBytes else { return }
    let reference = Unmanaged.passRetained(self)
    let address = UInt(bitPattern: reference.toOpaque())
    if !Self.kept.compareExchange(expected: 0, desired: address, ordering: .releasing).exchanged { reference.release() }
  }
}
