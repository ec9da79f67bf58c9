#if !os(Windows)
import Dispatch
package import Synchronization

/// What signals requested: the only state that their handler touches. The handler may interrupt anything, so nothing
/// here takes a lock or allocates.
package enum SignalNotes {
  /// The state of a request to stop.
  package enum Stop: UInt8, AtomicRepresentable {
    case none
    /// The process is to stop.
    case asked
    /// The process is to continue; this was requested before it had stopped.
    case takenBack
  }

  /// How long after the first signal, in milliseconds, another one still counts as part of it. A terminal that closes
  /// sends SIGHUP twice, from its shell and from the system, and service managers send SIGTERM and SIGHUP together: no
  /// player insists that soon.
  package static let insistence = Atomic<UInt64>(1_000)

  private static let numberBits: UInt64 = 8
  private static let numberMask: UInt64 = 1 << numberBits - 1

  /// The signal that is to end the process and, in the bits above it, its time: in one word, so that no handler sees
  /// one without the other.
  private static let end = Atomic<UInt64>(0)
  private static let stopState = Atomic(Stop.none)

  /// Initializes everything, so that the handler only loads and stores.
  static func prepare() {
    _ = (insistence.load(ordering: .relaxed), numberBits, numberMask, endSignal, stop, milliseconds())
  }

  /// The signal that is to end the process; zero if there is none.
  package static var endSignal: Int32 { number(end.load(ordering: .acquiring)) }

  package static var stop: Stop { stopState.load(ordering: .acquiring) }

  /// Records the first signal. Returns true for a later one if the game has had time and hasn't ended: it hangs, or the
  /// player insists.
  static func askEnd(_ number: Int32) -> Bool {
    let now = milliseconds()
    let asked = now << numberBits | UInt64(truncatingIfNeeded: number) & numberMask
    let (isFirst, first) = end.compareExchange(expected: 0, desired: asked, ordering: .acquiringAndReleasing)
    return !isFirst && now >= first >> numberBits + insistence.load(ordering: .relaxed)
  }

  /// Clears the signal that is to end the process, and returns it.
  static func takeEnd() -> Int32 { number(end.exchange(0, ordering: .acquiringAndReleasing)) }

  static func askStop() { stopState.store(.asked, ordering: .releasing) }

  /// Does nothing if no stop is requested, for example after a stop that took place.
  static func takeBackStop() { move(from: .asked, to: .takenBack) }

  /// Clears the request to stop, and returns it.
  static func takeStop() -> Stop { stopState.exchange(.none, ordering: .acquiringAndReleasing) }

  /// Changes the state to `new` if it is `old`; returns whether it was.
  @discardableResult
  static func move(from old: Stop, to new: Stop) -> Bool {
    stopState.compareExchange(expected: old, desired: new, ordering: .acquiringAndReleasing).exchanged
  }

  private static func number(_ word: UInt64) -> Int32 { Int32(truncatingIfNeeded: word & numberMask) }

  /// In a handler, this only reads the system's clock, once `prepare` has called it.
  private static func milliseconds() -> UInt64 { DispatchTime.now().uptimeNanoseconds / 1_000_000 }
}
#endif
