import Observation
import Synchronization

/// Tells who looked at a preference within `withObservationTracking`, or in a view of SwiftUI, that it changes.
///
/// One for each name that was ever looked at: a key path for each name would have to be made at each look.
final class PreferenceWatch: Observable, Sendable {
  private let registrar = ObservationRegistrar()
  private let wasTracked = Atomic(false)
  /// One for all: to make one takes long, because it holds a value.
  private static let mark: any KeyPath<PreferenceWatch, Int> & Sendable = \.[TrackingProbe()]

  /// Stands for the value in key paths.
  private subscript(probe: TrackingProbe) -> Int { 0 }

  /// Whether anybody ever tracked it. While nobody did there is nobody to tell, which most sets profit from.
  var isTracked: Bool { wasTracked.load(ordering: .acquiring) }

  /// Somebody looks. Costs next to nothing where nobody tracks.
  func access() {
    let before = TrackingProbe.hashings
    registrar.access(self, keyPath: Self.mark)
    if TrackingProbe.hashings != before { wasTracked.store(true, ordering: .releasing) }
  }

  // Both run code of the game's: never under a lock.
  func willSet() { registrar.willSet(self, keyPath: Self.mark) }
  func didSet() { registrar.didSet(self, keyPath: Self.mark) }
}

/// Tells whether a look is tracked, which Observation doesn't say: only then it puts the key path, and this in it, into a set.
///
/// A look on another thread meanwhile makes it seem so, too; that costs that watch a little for ever, and does no harm.
private struct TrackingProbe: Hashable {
  private static let count = Atomic<UInt64>(0)

  /// How often one was put into a set or looked up in one.
  static var hashings: UInt64 { count.load(ordering: .relaxed) }

  static func == (left: TrackingProbe, right: TrackingProbe) -> Bool { true }

  func hash(into hasher: inout Hasher) { Self.count.wrappingAdd(1, ordering: .relaxed) }
}

/// Who has to be told of one change: mostly nobody.
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
