/// When the game sees what came from other devices.
///
///     game.cloud.delivery = .onUpdate
///     game.cloud.connect(.server(url, appKey: key))
///     while running {
///       world.step()
///       try autosave.update()          // here, and nowhere else, something may change
///     }
///
/// The device goes on to hear and to download whatever this says, and keeps what came, durably. What was kept back is shown together: saved
/// games, progress, synced preferences, scores, balances and the changes that tell of them. What the game writes itself shows at once.
public enum CloudDelivery: Sendable, Hashable {
  /// As soon as all of it is here.
  case immediately
  /// In `Cloud.update()`, which `Autosave.update()` calls too.
  case onUpdate
  /// In `Cloud.deliver()` alone.
  case manually
}
