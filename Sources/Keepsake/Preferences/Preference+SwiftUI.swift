#if canImport(SwiftUI)
public import SwiftUI

// A view that reads the preference in its body is updated by Observation, so there is no state of its own to update.
extension Preference: DynamicProperty {
  /// A binding for controls that change the value.
  public var projectedValue: Binding<Value> {
    let (key, preferences) = (key, preferences)
    return Binding(get: { preferences[key] }, set: { preferences[key] = $0 })
  }
}
#endif
