#if canImport(SwiftUI)
public import SwiftUI
#endif

/// A preference as a property.
///
///     struct Options {
///       @Preference<Double> var volume: Double
///       init(game: GameData) { _volume = Preference(.volume, game) }
///     }
///
///     func mute(_ game: GameData) {
///       @Preference(.volume, game) var volume
///       volume = 0
///     }
///
/// Reads and sets like the subscript of `Preferences`, so Observation notices both. In a SwiftUI view, `$volume` is a
/// binding.
@propertyWrapper
public struct Preference<Value: Sendable>: Sendable {
  private let key: PreferenceKey<Value>
  private let preferences: Preferences

  /// Binds a property to a preference of a game.
  ///
  /// - Parameters:
  ///   - key: The preference.
  ///   - game: The game whose `preferences` hold it.
  public init(_ key: PreferenceKey<Value>, _ game: GameData) {
    self.key = key
    preferences = game.preferences
  }

  /// The preference's current value; its default if it was never set. Setting it does the same as
  /// `preferences[key] = value`.
  public var wrappedValue: Value {
    get { preferences[key] }
    nonmutating set { preferences[key] = newValue }
  }

  #if canImport(SwiftUI)
  // Here, because the compiler looks for it in the type itself and in no extension.
  /// A binding for controls that change the value.
  public var projectedValue: Binding<Value> {
    let (key, preferences) = (key, preferences)
    return Binding(get: { preferences[key] }, set: { preferences[key] = $0 })
  }
  #endif
}

#if canImport(SwiftUI)
// A view that reads the preference in its body is updated by Observation, so there is no state of its own to update.
extension Preference: DynamicProperty {}
#endif
