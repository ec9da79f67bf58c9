public import Foundation

/// Something that went wrong with what is kept, and what was done about it.
///
/// The game goes on; these are for a message to the player, or for a log.
public struct Incident: Sendable, Hashable {
  /// What happened.
  public enum Kind: String, Sendable, Hashable {
    /// A version of a saved game can't be read. If another was given in its place, `usedInstead` names it.
    case damagedVersion
    /// Something else that is kept can't be read.
    case unreadable
    /// The database was damaged. What could be read is in a new one, and the damaged files were set aside in the folder that
    /// the message names; a slot or a value may be older than it was.
    case recovered
    /// Something that only derives from the saves was damaged and was made anew, and nothing was lost; or the wallet was put in order from
    /// what is left of it, as the message says.
    case rebuilt
    /// The disk failed while saving. The database was opened anew and is whole; the saves that failed said so.
    case diskFailed
    /// Something doesn't verify under the game's seal: somebody without its secret wrote it, or put it where it doesn't belong.
    /// It was set aside or used, as the seal's policy says.
    case tampered
    /// A commit that a call had accepted failed later; its `Pending` has the error. Or a preference could not be set or kept.
    case failedCommit
    /// The cloud refused something: for good, or because the player has no room left there. `CloudStatus.refusals` has what is refused now.
    case refusedByCloud
    /// A content in the cloud is damaged or gone.
    case damagedInCloud
  }

  /// What happened.
  public var kind: Kind
  /// The slot's name, where it is about one.
  public var slot: String?
  /// The version that it is about.
  public var version: VersionID?
  /// The version that was given in its place.
  public var usedInstead: VersionID?
  /// A sentence that a person can act on.
  public var message: String
  /// When it was noticed, by this device's clock.
  public var date: Date
}
