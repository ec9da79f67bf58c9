#if Cloud
/// What a studio's backend can be told of. The names are part of the format (docs/WEBHOOKS.md).
package enum WebhookKind: String, CaseIterable, Hashable, Sendable, Codable {
  /// A version of a save came, or a delete of one.
  case saveArrived
  /// A slot has shown two or more current versions for some minutes.
  case conflictOpen
  /// The bank has accepted a spend, or performed an order.
  case purchaseSettled
  case deviceAdded
  case deviceRemoved
  /// A device's store went back to an older state.
  case deviceSetBack
  /// Everything of a player was deleted. Has a hash in place of the player's id.
  case playerDeleted
}
#endif
