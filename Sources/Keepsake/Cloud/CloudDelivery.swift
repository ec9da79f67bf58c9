/// When the game sees changes received from other devices: the values of `Cloud.delivery`.
///
/// ```swift
/// game.cloud.delivery = .onUpdate
/// game.cloud.connect(.server(url, appKey: key))
/// while running {
///   world.step()
///   try autosave.update()    // changes become visible here and nowhere else
/// }
/// ```
///
/// The device fetches and downloads regardless of this setting, and keeps durably what it receives. Everything held
/// back is delivered together: saved games, progress, synced preferences, scores, balances and their changes. The
/// game's own writes are visible immediately.
public enum CloudDelivery: Sendable, Hashable {
  /// As soon as all of it is on this device.
  case immediately
  /// In `Cloud.update()`, which `Autosave.update()` also calls.
  case onUpdate
  /// Only in `Cloud.deliver()`.
  case manually
}
