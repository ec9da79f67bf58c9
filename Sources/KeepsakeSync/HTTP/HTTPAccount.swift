package import Foundation
import KeepsakePlatform
package import KeepsakeReplication

/// Registers with a Keepsake server, and adds further devices to the same player.
package struct HTTPAccount: Sendable {
  /// The right by which a container is asked for.
  private enum Right {
    /// The game's app key: for a container of the game's own.
    case appKey(String)
    /// The token of the player's device in the game itself: for the shared container of this name.
    case parent(CloudCredentials, name: String)
  }
  private let url: URL
  private let right: Right

  package init(url: URL, appKey: String) {
    self.url = url
    right = .appKey(appKey)
  }

  /// Creates an account in the shared container of this name, whose devices belong to those of the game itself.
  ///
  /// - Parameter parent: The player's device in the game itself.
  package init(shared name: String, parent: CloudCredentials) {
    url = parent.url
    right = .parent(parent, name: name)
  }

  private struct Registration: Encodable {
    var name: String
  }
  private struct Joining: Encodable {
    var code: String
    var name: String
  }
  struct Account: Decodable {
    var device: DeviceID
    var player: PlayerID
    var container: ContainerID
    var token: String

    func credentials(at url: URL) -> CloudCredentials {
      CloudCredentials(url: url, device: device, player: player, container: container, token: token)
    }
  }

  /// Creates a new player with this device. One round trip.
  ///
  /// Repeating this after a lost response creates another player, so register while nothing depends on it yet. In a
  /// shared container it creates another device of the same player.
  package func register(name: String) async throws(AccountError) -> CloudCredentials {
    try await account("devices", body: Registration(name: name))
  }

  /// Adds this device to the player whose other device shows `code`. One round trip; a code works once.
  package func join(code: String, name: String) async throws(AccountError) -> CloudCredentials {
    try await account("pairing/join", body: Joining(code: code, name: name))
  }

  /// Returns a code to type on another device, once, before it expires. One round trip.
  package static func pairingCode(for credentials: CloudCredentials) async throws(AccountError) -> PairingCode {
    var request = HTTPRequests.request("POST", credentials.url, "v1/pairing")
    request.setValue("Bearer " + credentials.token, forHTTPHeaderField: "Authorization")
    return try await send(request, body: Data())
  }

  /// - Parameters:
  ///   - path: The route below `v1`, or below the shared container.
  ///   - unknown: The error for a server that doesn't know the route; nil for routes that every server knows.
  func account(
    _ path: String, body: some Encodable, unknown: AccountError? = nil
  ) async throws(AccountError) -> CloudCredentials {
    var request: URLRequest
    var unknown = unknown
    switch right {
    case .appKey(let key):
      request = HTTPRequests.request("POST", url, "v1/" + path)
      request.setValue(key, forHTTPHeaderField: "Keepsake-App-Key")
    case .parent(let parent, let name):
      request = HTTPRequests.request("POST", parent, "v1/shared/\(name)/\(path)")
      unknown = .sharedUnsupported
    }
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    let bytes: Data
    do {
      bytes = try HTTPRequests.encode(body)
    } catch {
      throw AccountError(.failed(error), error.message)
    }
    let account: Account = try await Self.send(request, body: bytes, unknown: unknown)
    return account.credentials(at: url)
  }

  private static func send<Value: Decodable>(
    _ request: URLRequest, body: Data, unknown: AccountError? = nil
  ) async throws(AccountError) -> Value {
    let answer: HTTPSession.Answer
    do {
      let session = HTTPSession(idleSeconds: SyncLimits.idleSeconds)
      answer = try await session.send(request, body: body, limit: SyncLimits.accountBytes)
    } catch {
      throw AccountError(error)
    }
    if let refusal = AccountError(answer) { throw refusal }
    if let unknown, HTTPAnswer.isUnknownRoute(answer) { throw unknown }
    do {
      try HTTPAnswer.check(answer.response, body: answer.body)
      return try HTTPAnswer.decode(Value.self, answer.body)
    } catch {
      throw AccountError(error)
    }
  }
}

extension AccountError {
  /// The server is older than shared containers.
  static let sharedUnsupported: AccountError = {
    let message = "The server doesn't know shared containers: they need a newer version of it."
    return AccountError(.failed(TransportFailure(.rejected, message)), message)
  }()
}

/// A code that another device uses to join.
package struct PairingCode: Hashable, Sendable, Codable {
  package var code: String
  package var expiresInSeconds: Int

  package init(code: String, expiresInSeconds: Int) {
    self.code = code
    self.expiresInSeconds = expiresInSeconds
  }
}

/// Why registering or pairing failed.
package struct AccountError: Error, Sendable, CustomStringConvertible {
  package enum Code: Hashable, Sendable {
    /// The pairing code is wrong, used or expired.
    case codeUnknown
    /// Too many wrong codes: wait this many milliseconds.
    case tooManyGuesses(waitMilliseconds: Int64)
    /// The identity leads to another player.
    case identityTaken
    /// The identity leads to no player.
    case identityUnknown
    /// The device was removed, or everything of its player was deleted.
    case retired
    /// The app key or the token isn't accepted.
    case unauthorized
    /// The game isn't entitled to the shared container, or there is none of this name.
    case notEntitled
    /// The game may only read the shared container.
    case readOnly
    /// Any other failure of the request.
    case failed(TransportFailure)
  }
  package var code: Code

  /// Whether the server has refused the request as it is: the same request would be refused again.
  package var isRefusal: Bool {
    switch code {
    case .codeUnknown, .identityTaken, .identityUnknown, .retired, .unauthorized, .readOnly: true
    case .tooManyGuesses, .notEntitled: false
    case .failed(let failure): failure.kind == .rejected
    }
  }

  /// A sentence for people.
  package var message: String

  init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// Creates the error for a response about codes, identities or a container that may only be read; nil for any other
  /// response.
  init?(_ answer: HTTPSession.Answer) {
    switch HTTPAnswer.code(answer.body) {
    case "code_unknown":
      self.init(.codeUnknown, "The code is wrong, used or too old. Ask for a new one on another device.")
    case "too_many_guesses":
      self.init(
        .tooManyGuesses(waitMilliseconds: HTTPAnswer.retryAfter(answer.response) ?? 60_000),
        "Too many wrong codes. Wait a while, then ask for a new one.")
    case "identity_taken":
      self.init(
        .identityTaken,
        """
        This identity leads to another player. The device can become one of that player's, which joins its data with \
        theirs, or stay apart without the identity.
        """)
    case "identity_unknown":
      self.init(.identityUnknown, "This identity leads to no player.")
    case "read_only":
      self.init(
        .readOnly, "This game may only read this shared container: ask for it in the studio's game that may write.")
    default:
      return nil
    }
  }

  init(_ failure: TransportFailure) {
    let code: Code =
      switch failure.kind {
      case .unauthorized: .unauthorized
      case .notEntitled: .notEntitled
      default: .failed(failure)
      }
    self.init(code, failure.message)
  }

  package var description: String { message }
}
