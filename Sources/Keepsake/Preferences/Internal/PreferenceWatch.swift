import Observation
import Synchronization

/// Notifies those who read a preference within `withObservationTracking`, or in a SwiftUI view, that it changes.
///
/// There is one object for each name that was ever read. One object for all would need a key path for each name, made
/// at each read.
final class PreferenceWatch: Observable, Sendable {
  private let registrar = ObservationRegistrar()
  private let wasTracked = Atomic(false)
  /// One key path for all objects: making one takes long, because it contains a value.
  private static let mark: any KeyPath<PreferenceWatch, Int> & Sendable = \.[TrackingProbe()]

  /// Represents the preference's value in key paths.
  private subscript(probe: TrackingProbe) -> Int { 0 }

  /// Whether anybody ever tracked it. Until then there is nobody to notify, which makes most sets faster.
  var isTracked: Bool { wasTracked.load(ordering: .acquiring) }

  /// Registers a read. Costs next to nothing if nobody tracks.
  func access() {
    let before = TrackingProbe.hashings
    registrar.access(self, keyPath: Self.mark)
    if TrackingProbe.hashings != before { wasTracked.store(true, ordering: .releasing) }
  }

  // Both run the game's code: never call them under a lock.
  func willSet() { registrar.willSet(self, keyPath: Self.mark) }
  func didSet() { registrar.didSet(self, keyPath: Self.mark) }
}

/// Detects whether a read is tracked, which Observation doesn't report: only then does it insert the key path, with
/// this value in it, into a set.
///
/// A tracked read on another thread at the same time makes an untracked one look tracked, too. That makes the one watch
/// slightly slower forever, and does no other harm.
private struct TrackingProbe: Hashable {
  private static let count = Atomic<UInt64>(0)

  /// How often a probe was inserted into a set or looked up in one.
  static var hashings: UInt64 { count.load(ordering: .relaxed) }

  static func == (left: TrackingProbe, right: TrackingProbe) -> Bool { true }

  func hash(into hasher: inout Hasher) { Self.count.wrappingAdd(1, ordering: .relaxed) }
}

/// The observers to notify of one change; usually there are none.
struct PreferenceWatchers {
  var value: PreferenceWatch?
  var names: PreferenceWatch?

  var isEmpty: Bool { value?.isTracked != true && names?.isTracked != true }

  func willSet() {
    value?.willSet()
    names?.willSet()
  }

  func didSet() {
    value?.didSet()
    names?.didSet()
  }
}
