import Observation

/// Tells who looked at a preference within `withObservationTracking`, or in a view of SwiftUI, that it changes.
///
/// One for each name that was ever looked at: a key path for each name would have to be made at each look.
final class PreferenceWatch: Observable, Sendable {
  private let registrar = ObservationRegistrar()

  /// Stands for the value in key paths.
  private var mark: Int { 0 }

  /// Somebody looks. Costs next to nothing where nobody tracks.
  func access() { registrar.access(self, keyPath: \.mark) }

  // Both run code of the game's: never under a lock.
  func willSet() { registrar.willSet(self, keyPath: \.mark) }
  func didSet() { registrar.didSet(self, keyPath: \.mark) }
}

/// Who has to be told of one change: mostly nobody.
struct PreferenceWatchers {
  var value: PreferenceWatch?
  var names: PreferenceWatch?

  var isEmpty: Bool { value == nil && names == nil }

  func willSet() {
    value?.willSet()
    names?.willSet()
  }

  func didSet() {
    value?.didSet()
    names?.didSet()
  }
}
