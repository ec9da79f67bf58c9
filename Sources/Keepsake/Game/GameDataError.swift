/// Why a call to the game's data could not do what was asked, where neither the store nor an archive is at fault.
///
/// Damage and the disk speak through `StoreError`, bytes that are no value of the type through `ArchiveError`.
public struct GameDataError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What kind of failure it is: what a program branches on.
  public enum Code: Sendable, Hashable {
    /// The call is wrong: a name, an amount or a value that can't be taken, a key used with another rule.
    case misuse
    /// What is there was written by a newer game or library, by a rule that this one doesn't know; it stays as it is.
    case tooNew
    /// A limit was passed; nothing was written.
    case tooLarge
    /// Less can be spent here now than was asked; `balance` is what the player has in all.
    case insufficient(spendable: Int64, balance: Int64)
    /// A reset before this store has once caught up with its cloud: it would fall behind resets not yet seen.
    case notCaughtUp
    /// The version or slot named isn't kept here.
    case missing
    /// The save is in the cloud, and only its record is on this device: `SaveSlots.download` brings it.
    case notDownloaded
    /// Something else stands at that place already; it is as it was.
    case occupied
    /// There is no cloud to ask: connect first.
    case notConnected
    /// The cloud can't be reached now.
    case unreachable
    /// The cloud doesn't take this request: a wrong app key, an expired pairing code, a token that was retired.
    case refused
    /// The time given was not enough; what was begun goes on.
    case timedOut
    /// The game's data is closed.
    case closed
    /// Forgetting it would lose this for good: no cloud has it. Nothing was forgotten.
    case wouldBeLost(UnsentData)
    /// No other device of the player is known to the cloud, and only a device of the player can let another one in: forgetting this one would leave
    /// what the cloud has out of everybody's reach. Nothing was forgotten.
    case lastDevice
    /// The money of the data that was to be adopted is on its way to this other account, which has to be opened to take it.
    case promised(to: Account)
  }

  /// What kind of failure it is.
  public var code: Code
  /// A sentence that a person can act on.
  public var message: String

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - code: What kind of failure it is.
  ///   - message: A sentence that a person can act on.
  public init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  public var description: String { "\(message) [\(code)]" }
}
