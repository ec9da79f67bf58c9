/// Faults that tests plant, to see that the simulation finds them. No product code passes any.
package enum PlantedBug: String, Hashable, Sendable, CaseIterable {
  /// The engine says that a save is certain before the storage has committed that.
  case acknowledgeBeforeCommit
  /// A save covers heads that the game never loaded.
  case coverUnloaded
  /// A store that is opened again goes on under its old writer's name.
  case reuseWriter
  /// Pages are shown as they come, before the last one.
  case showHalfPages
  /// A group leaves the outbox when it is sent.
  case forgetWhenSent
  /// What the cloud refuses leaves the outbox.
  case dropRefused
  /// The cloud keeps an echo to itself though it joined something that the sender doesn't have.
  case swallowEcho
  /// The device takes a fork's head for its own.
  case ignoreFork
}
