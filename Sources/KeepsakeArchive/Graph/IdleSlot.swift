import Synchronization

/// Keeps one object that is costly to create between uses. A caller that finds the slot empty creates another.
///
/// Objects are passed unmanaged, because for a small value, counting references takes longer than encoding.
struct IdleSlot<Content: AnyObject>: ~Copyable {
  /// The address of the kept object, which owns a reference to it; 0 if there is none.
  private let address = Atomic<UInt>(0)

  init() {}

  deinit { take()?.release() }

  /// Returns the kept object, if there is one. The caller owns a reference, and gives it back or releases it.
  func take() -> Unmanaged<Content>? {
    UnsafeRawPointer(bitPattern: address.exchange(0, ordering: .acquiring)).map { .fromOpaque($0) }
  }

  /// Takes over the caller's reference: puts the object into the slot, or releases it if the slot is taken.
  func giveBack(_ content: Unmanaged<Content>) {
    let mine = UInt(bitPattern: content.toOpaque())
    if !address.compareExchange(expected: 0, desired: mine, ordering: .releasing).exchanged { content.release() }
  }
}
