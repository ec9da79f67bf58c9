public import Foundation
import KeepsakeReplication
import KeepsakeSync

/// Whether a player who loses this device could come back.
public struct RecoveryState: Sendable, Hashable {
  /// How many other devices the player has, with those that were lost and never removed: each of them can admit a new
  /// one with a pairing code.
  public let otherDevices: Int
  /// When the player's recovery code was made, by the server's clock; nil if there is none.
  public let codeCreated: Date?
  /// Whether the code that is in force was made by this device and never reached the game: nobody has it.
  public let isCodeLost: Bool
  /// How many identities lead to the player (see `Cloud.signIn(_:ifTaken:)`).
  public let identities: Int
  /// Whether the cloud knows recovery codes. A server of an earlier release doesn't: there is none then, and making or
  /// using one is `refused`.
  public let supportsCodes: Bool

  /// Whether the player could get everything in the cloud back after losing this device, as far as it is known.
  public var canComeBack: Bool { codeCreated != nil || identities > 0 || (otherDevices > 0 && !isCodeLost) }
}

/// Coming back without any device.
extension Cloud {
  /// Makes a recovery code: with it, a player who has lost every device gets everything in the cloud back on a new one.
  ///
  /// ```swift
  /// if try await !game.cloud.recoveryState().canComeBack {
  ///   show(try await game.cloud.makeRecoveryCode())     // "4KT7Q-0XW2N-..." to write down; it isn't shown again
  /// }
  /// ```
  ///
  /// The code has seven groups of five characters, 140 random bits. It takes the place of any earlier one, and is valid
  /// until it is used or replaced. Only this call returns it, and neither the server nor this device keeps it. Treat it
  /// like a password: it gives access to everything of the player. It is void once another device removes the one that
  /// made it, and stays if that signs out. It leads to the player that this device belongs to now, also after the
  /// device has joined another. Costs one round trip, and another one if this device still has to be registered.
  ///
  /// - Returns: The code, for the player to write down.
  /// - Throws: `GameDataError` with `notConnected`, `unreachable` or `refused`, also by a server that doesn't know
  ///   recovery codes (`RecoveryState.supportsCodes`); with `misuse` if the cloud is a folder; `StoreError` if this
  ///   device's files can't be read or written, with `newerFormat` if a newer release wrote them. After `unreachable`,
  ///   an earlier code may be void, which `recoveryState()` tells.
  public func makeRecoveryCode() async throws -> String {
    let code = try await connection.registration.newRecoveryCode()
    try await connection.asPlayer { try await HTTPAccount.setRecoveryCode(code, for: $0) }
    try await connection.registration.handOver(code)
    return code.text
  }

  /// Whether a player who loses this device could come back. With it a game asks at a good moment, such as after the
  /// first hour of play or the first purchase, if the player wants a recovery code.
  ///
  /// Costs one round trip, another one if this device still has to be registered, and another one at a server that
  /// doesn't know recovery codes.
  ///
  /// - Returns: The state; with `supportsCodes` false from a server that doesn't know recovery codes.
  /// - Throws: As `makeRecoveryCode()`, but not for such a server.
  public func recoveryState() async throws -> RecoveryState {
    let registration = connection.registration
    return try await connection.asPlayer { try await registration.recoveryState(of: $0) }
  }

  /// Makes this device one of the player whose recovery code was typed. The code is used up, and a new one takes
  /// its place.
  ///
  /// ```swift
  /// show(try await game.cloud.recover(typed))     // the next code to write down
  /// ```
  ///
  /// This device's data is joined with the player's as by `join(_:)`. The devices that were lost stay the player's
  /// until `remove(_:)`, which also makes the money that they held available again. If the response is lost, or the
  /// game ends before this returns, the same call on this device has the same result, until the next code is used or
  /// replaced; this device keeps that code until then, in a file that only its user can read. If that file is damaged
  /// meanwhile, it is set aside with an incident (`unreadable`), and the call is `refused`. Costs a round trip, and
  /// another one if this device is registered already.
  ///
  /// - Parameter typed: The code, as the player has typed it: hyphens, spaces and the case of letters don't matter, and
  ///   O, I and L count as 0, 1 and 1.
  /// - Returns: The new code, for the player to write down.
  /// - Throws: `GameDataError` with `mistyped`, without asking the server; as `join(_:)`, with `refused` for a code
  ///   that was used or replaced or by a server that doesn't know recovery codes, and `misuse` if this device is that
  ///   player's already.
  public func recover(_ typed: String) async throws -> String {
    let code = try Self.recoveryCode(typed)
    let registration = connection.registration
    try await connection.join { server, name in try await registration.recover(code, at: server, name: name) }
    let next = try await registration.recoveryCode(after: code)
    try await registration.handOver(next)
    return next.text
  }

  /// Whether the player of these credentials has a code or an identity; false for a server that knows neither, and for
  /// one that refuses the device.
  func hasWayBack(_ credentials: CloudCredentials) async throws -> Bool {
    do {
      let state = try await connection.registration.recoveryState(of: credentials)
      return state.codeCreated != nil || state.identities > 0
    } catch let error as AccountError where error.isRefusal {
      return false
    }
  }

  /// Checks what a player has typed so far, without asking the server. For a text field that shows mistakes at once.
  ///
  /// - Parameter typed: The code.
  /// - Throws: `GameDataError` with `mistyped`: a group with a mistake, a character that no code has, or another
  ///   length. A code without mistakes needn't be a player's.
  public static func checkRecoveryCode(_ typed: String) throws { _ = try recoveryCode(typed) }

  private static func recoveryCode(_ typed: String) throws -> RecoveryCode {
    do {
      return try RecoveryCode(typed: typed)
    } catch {
      throw GameDataError(.mistyped, error.message)
    }
  }
}
