public import Foundation
import KeepsakeReplication
import KeepsakeSync

/// Whether a player who loses this device could come back.
public struct RecoveryState: Sendable, Hashable {
  /// How many other devices the player has: each of them can admit a new one with a pairing code.
  public let otherDevices: Int
  /// When the player's recovery code was made, by the server's clock; nil if there is none.
  public let codeCreated: Date?

  /// Whether the player could get everything in the cloud back after losing this device.
  public var canComeBack: Bool { otherDevices > 0 || codeCreated != nil }
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
  /// The code has seven groups of five characters, 140 random bits. It takes the place of any earlier one, is valid
  /// until it is used or replaced, and only this call returns it: neither the server nor this device keeps it. Whoever
  /// has it is the player. It is void once another device removes the one that made it. Costs one round trip, and
  /// another one if this device still has to be registered.
  ///
  /// - Returns: The code, for the player to write down.
  /// - Throws: `GameDataError` with `notConnected`, `unreachable` or `refused`; with `misuse` if the cloud is a folder;
  ///   `StoreError` if this device's files can't be read or written. After `unreachable`, an earlier code may be void.
  public func makeRecoveryCode() async throws -> String {
    var source = SystemRandomNumberGenerator()
    let code = RecoveryCode(using: &source)
    try await connection.asPlayer { try await HTTPAccount.setRecoveryCode(code, for: $0) }
    try connection.recoveryFile.remove()
    return code.text
  }

  /// Whether a player who loses this device could come back. With it a game asks at a good moment, such as after the
  /// first hour of play or the first purchase, if the player wants a recovery code.
  ///
  /// Costs one round trip, and another one if this device still has to be registered.
  ///
  /// - Returns: The state. A code that was made by `recover` and that the game never got counts as none.
  /// - Throws: As `makeRecoveryCode()`.
  public func recoveryState() async throws -> RecoveryState {
    let facts = try await connection.asPlayer { try await HTTPAccount.recovery(for: $0) }
    let isUnknown = try connection.recoveryFile.isPending()
    return RecoveryState(
      otherDevices: max(facts.devices - 1, 0),
      codeCreated: isUnknown
        ? nil : facts.createdMilliseconds.map { Date(timeIntervalSince1970: Double($0) / 1000) })
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
  /// game ends before this returns, the same call within a day has the same result.
  ///
  /// - Parameter typed: The code, as the player has typed it: hyphens, spaces and the case of letters don't matter, and
  ///   O, I and L count as 0, 1 and 1.
  /// - Returns: The new code, for the player to write down.
  /// - Throws: `GameDataError` with `mistyped`, without asking the server; as `join(_:)`, with `refused` for a code
  ///   that was used or replaced.
  public func recover(_ typed: String) async throws -> String {
    let code = try Self.recoveryCode(typed)
    let (file, registration) = (connection.recoveryFile, connection.registration)
    let next = try file.next(after: code)
    do {
      try await connection.join { server, name in
        try await registration.recover(code, next: next, at: server, name: name)
      }
    } catch let error as GameDataError where error.code == .refused {
      // It was not used, and won't be.
      try file.remove()
      throw error
    }
    try file.remove()
    return next.text
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
      throw GameDataError(.mistyped, message(error))
    }
  }

  private static func message(_ mistake: RecoveryCode.Mistake) -> String {
    switch mistake {
    case .group(let number): "there is a mistake in group \(number) of the recovery code"
    case .character(let character): "a recovery code has no \"\(character)\""
    case .length(let count):
      """
      a recovery code has \(RecoveryCode.groupCount) groups of \(RecoveryCode.groupLength) characters, and this has \
      \(CountText.of(count, "character"))
      """
    }
  }
}

extension CloudConnection {
  nonisolated var recoveryFile: RecoveryFile { RecoveryFile(in: core.store.url, of: core.store.base) }
}
