public import Foundation

/// A problem with the kept data, and what was done about it.
///
/// The game continues. Incidents are for a message to the player or for a log.
public struct Incident: Sendable, Hashable {
  /// What happened.
  public enum Kind: String, Sendable, Hashable {
    /// A version of a saved game can't be read. `usedInstead` names the version that was returned in its place, if any.
    case damagedVersion
    /// Something else that is kept can't be read.
    case unreadable
    /// The database was damaged. A new one has everything that could be read, and the damaged files were moved to the
    /// folder that the message names. A slot or a value may be older than before.
    case recovered
    /// Data derived from the saves was damaged and has been rebuilt without loss; or the wallet was repaired from what
    /// is left of it, as the message says.
    case rebuilt
    /// The disk failed during a commit. The database was reopened and is intact; the failed commits reported the error.
    case diskFailed
    /// Something doesn't verify under the game's seal: it was written or moved without the secret. The seal's policy
    /// decides whether it is set aside or used.
    case tampered
    /// An accepted commit failed later (its `Pending` has the error), or a preference could not be saved.
    case failedCommit
    /// The cloud refused something, permanently or because the player's quota is used up. `CloudStatus.refusals` has
    /// what is refused now.
    case refusedByCloud
    /// A save's contents are damaged or missing in the cloud.
    case damagedInCloud
  }

  /// What happened.
  public var kind: Kind
  /// The slot's name, if a slot is concerned.
  public var slot: String?
  /// The version concerned, if there is one.
  public var version: VersionID?
  /// The version that was returned in its place.
  public var usedInstead: VersionID?
  /// A sentence for people, which says what they can do.
  public var message: String
  /// When the problem was noticed, by this device's clock.
  public var date: Date
}
