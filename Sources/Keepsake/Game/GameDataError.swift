public import Foundation
public import KeepsakeReplication

/// The reason why a call failed, if neither the store nor an archive is the cause.
///
/// Problems with the disk and damage are `StoreError`s; bytes that can't be decoded are `ArchiveError`s.
public struct GameDataError: LocalizedError, Sendable, Hashable, CustomStringConvertible {
  /// The kind of failure, for a program to branch on.
  public enum Code: Sendable, Hashable {
    /// The call is invalid: a bad name, amount or value, or a key that is used with another rule.
    case misuse
    /// A newer game or library wrote the data with a rule that this one doesn't know. The data is unchanged.
    case tooNew
    /// A limit was exceeded. Nothing was written.
    case tooLarge
    /// This device can spend less than the requested amount; `total` is what the player has on all devices and in the
    /// bank. If a purchase has asked the bank in vain, `held` lists the devices that hold the rest, the most first;
    /// otherwise it is empty.
    case insufficient(spendable: Int64, total: Int64, held: [Holding])
    /// Another operation was performed under this identifier, with another kind, amount, currency or goods. Nothing has
    /// changed.
    case idReused(OperationID)
    /// No device makes more of this currency: only the game's own servers do. Nothing has changed.
    case notAllowed(Currency)
    /// A reset before this store has received everything that its cloud has: it could undo resets that this store
    /// doesn't know of.
    case notCaughtUp
    /// The version or slot isn't kept on this device.
    case missing
    /// The save is in the cloud, and only its record is on this device: call `SaveSlots.download`.
    case notDownloaded
    /// Something else is already at the destination. It is unchanged.
    case occupied
    /// The folder's data belongs to the game with this identifier, which isn't the one that was passed. It is
    /// unchanged.
    case otherGame(String)
    /// No cloud is connected, or `Cloud.isEnabled` is false.
    case notConnected
    /// The cloud can't be reached now.
    case unreachable
    /// The cloud refuses the request: a wrong app key, an expired pairing code, a removed device.
    case refused
    /// The game isn't entitled to the shared container, or there is none of this name (see `GameData.shared(_:)`). Its
    /// studio may entitle it at any time.
    case notEntitled
    /// The game may only read the shared container: it can't earn or spend its money, make codes for it or delete it.
    /// Nothing has changed.
    case readOnly
    /// The identity leads to another player, and this device has data or ways back of its own: `Cloud.signIn` with
    /// `ifTaken: .join` makes the device one of that player's; without it, the device stays apart. Nothing has changed.
    case identityTaken
    /// The recovery code can't be right. The message says where the mistake is.
    case mistyped
    /// The time limit has passed. What was started continues.
    case timedOut
    /// The game's data is closed.
    case closed
    /// Deleting the data would lose this permanently, because no cloud has it. Nothing was deleted.
    case wouldBeLost(UnsentData)
    /// The cloud knows no other device of the player, who has no recovery code and no identity either: deleting this
    /// one's data would make the cloud's data unreachable. Nothing was deleted.
    case lastDevice
    /// The money of the data to be adopted is already being transferred to this other account, which must be opened to
    /// receive it.
    case promised(to: Account)
  }

  /// The kind of failure.
  public var code: Code
  /// A sentence for people that says what they can do.
  public var message: String

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: The kind of failure.
  ///   - message: A sentence for people.
  public init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  public var description: String { "\(message) [\(code)]" }

  public var errorDescription: String? { message }
}
