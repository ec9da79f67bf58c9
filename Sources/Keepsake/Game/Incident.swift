public import Foundation

/// A problem with the kept data, and what was done about it.
///
/// The game continues. Incidents are for a message to the player or for a log.
public struct Incident: Sendable, Hashable {
  /// The kind of problem.
  public enum Kind: String, Sendable, Hashable {
    /// A version of a saved game can't be read. `usedInstead` contains the version that was returned in its place, if
    /// any.
    case damagedVersion
    /// Something else can't be read, such as a preference, a score, the wallet, or an earlier version of a saved game
    /// that a conflict is then merged without; or a save in a conflict, which a slot was then loaded without; or a save
    /// of another type was in a slot that the game hadn't loaded, and was kept beside the new one; or the file with
    /// recovery codes, which was moved to the folder that the message names.
    case unreadable
    /// The database was damaged. A new one contains everything that could be read, and the damaged files were moved to
    /// the folder that the message names. A slot or a value may be older than before.
    case recovered
    /// Data derived from the saves was damaged and has been rebuilt without loss; or the wallet was repaired from what
    /// is left of it, as the message says.
    case rebuilt
    /// The disk failed during a commit. The database was reopened and is intact; the failed commits reported the error.
    case diskFailed
    /// The game's files were removed, moved or replaced while the game had them open. Nothing is saved any more:
    /// `GameData.rescue(to:)` saves what is still open in another folder.
    case removed
    /// A backup of the data, which a damaged store is repaired from, could not be made. Nothing else is wrong; a later
    /// one is tried when it is due. Reported once for each cause.
    case backupFailed
    /// Data doesn't verify under the game's seal: it was written or moved without the secret. The seal's policy decides
    /// whether it is set aside or used.
    case tampered
    /// A commit that had been accepted failed later (its `Pending` has the error), or a preference could not be saved.
    case failedCommit
    /// The cloud refused something, permanently or because the player's quota is used up. `CloudStatus.refusals` lists
    /// what is currently refused.
    case refusedByCloud
    /// A save's contents are damaged or missing in the cloud.
    case damagedInCloud
    /// Money that was on its way from the bank of a player that this device belonged to before won't arrive, as the
    /// message says. It is no longer in `Balance.pending`.
    case moneyLost
    /// Money at the bank of a player that this device belonged to before can't be asked for, since the credentials for
    /// that player's cloud are missing. It stays in `Balance.pending`.
    case moneyOutOfReach
    /// The credential store failed (see `CredentialStorage`). Without it this device can't sync, or its credentials
    /// stay where they were before, as the message says. Saving and playing go on, and it is tried again.
    case credentialStoreFailed
  }

  /// The kind of problem.
  public var kind: Kind
  /// The name of the affected slot, if there is one.
  public var slot: String?
  /// The affected version, if there is one.
  public var version: VersionID?
  /// The version that was returned in its place.
  public var usedInstead: VersionID?
  /// A sentence for people that says what they can do.
  public var message: String
  /// When the problem was noticed, by this device's clock.
  public var date: Date
}
