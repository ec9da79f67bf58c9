#if Cloud
/// What an admin key allows. A key has one or several.
package enum AdminScope: String, CaseIterable, Sendable, Codable {
  /// Finding players, and looking at devices, saves, their contents, and money.
  case read
  /// Restoring an earlier version of a save.
  case saves
  /// Granting, charging and refunding money.
  case money
  /// Removing a device, and unlinking an identity.
  case devices
  /// Banning a player, and lifting that.
  case bans
  /// Exporting everything of a player.
  case export
  /// Deleting everything of a player.
  case delete
  /// Looking at what webhooks wait for, and sending dead letters again. Only a key that is good for all players.
  case webhooks
}
#endif
