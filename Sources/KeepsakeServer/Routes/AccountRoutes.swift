#if Cloud
import Crypto
import Foundation
import Hummingbird
import KeepsakeReplication

/// Registers a device, and lets a second one join its player.
extension CloudRoutes {
  private struct Registration: Decodable {
    var name: String?
  }
  private struct Joining: Decodable {
    var code: String
    var name: String?
  }
  private struct Account: Encodable {
    var device: DeviceID
    var player: PlayerID
    var container: ContainerID
    var token: String
  }
  private struct PairingCode: Encodable {
    var code: String
    var expiresInSeconds: Int
  }

  func addAccountRoutes(to router: RouterGroup<CloudContext>) {
    router.post("devices") { request, context in
      let app = try app(of: request)
      try gate.rates.registration(from: gate.client(of: request, context), app: app)
      let name = try await newName(of: request)
      var source = SystemRandomNumberGenerator()
      let player = PlayerID(using: &source)
      let container = ContainerID(using: &source)
      return try await register(player: player, container: container, app: app, name: name)
    }
    router.post("pairing") { request, _ in
      let identity = try await writingIdentity(of: request)
      var source = SystemRandomNumberGenerator()
      let code = ReadableCode.make(length: ReadableCode.pairingLength, using: &source)
      let now = clock()
      let pairing = Pairing(
        code: Self.digest(code), scope: appKeys.scope(of: identity.app), player: identity.player,
        container: identity.container, expiresMilliseconds: now + Int64(ServerLimits.pairingSeconds) * 1000)
      try await storage.putPairing(pairing, for: identity.device, now: now)
      return try Response(
        json: PairingCode(code: code, expiresInSeconds: ServerLimits.pairingSeconds), status: .created)
    }
    router.post("pairing/join") { request, context in
      let app = try app(of: request)
      return try await join(request, context, EntryRight(app), of: app)
    }
  }

  /// Answers a request with a pairing code.
  ///
  /// - Parameter app: That of the request, by which guesses are counted.
  func join(
    _ request: Request, _ context: CloudContext, _ right: EntryRight, of app: AppID
  ) async throws -> Response {
    let joining = try await gate.json(Joining.self, of: request, limit: ServerLimits.accountBytes)
    let name = try Self.name(joining.name)
    return try await guess(request, context, app: app) { now in
      try await join(joining.code, by: right, name: name, now: now)
    }
  }

  /// The name of a new device, from its request.
  func newName(of request: Request) async throws -> String {
    try Self.name(await gate.json(Registration.self, of: request, limit: ServerLimits.accountBytes).name)
  }

  /// Answers a request with a code, unless its client has sent too many wrong ones.
  ///
  /// - Parameter attempt: Uses up the code and returns the new device; nil for a code that nobody has.
  func guess(
    _ request: Request, _ context: CloudContext, app: AppID,
    _ attempt: (_ now: Int64) async throws -> DeviceIdentity?
  ) async throws -> Response {
    let now = clock()
    let peer = gate.client(of: request, context).network
    try beginGuess(peer: peer, app: app, now: now)
    let identity: DeviceIdentity?
    do {
      identity = try await attempt(now)
    } catch {
      // A guess whose client has gone may have been tried.
      if !(error is CancellationError) { guesses.takeBack(peer: peer, app: app) }
      throw error
    }
    guard let identity else {
      throw APIError(.notFound, .codeUnknown, "The code is wrong, used or expired; get a new one.")
    }
    guesses.takeBack(peer: peer, app: app)
    gate.rates.joined(from: peer, app: app)
    return try account(identity)
  }

  /// Counts a guess as wrong, until it is taken back. Throws an `APIError` if its client has sent too many wrong ones.
  func beginGuess(peer: PeerAddress, app: AppID, now: Int64) throws {
    guard let seconds = guesses.begin(peer: peer, app: app, now: now) else { return }
    throw gate.refusals.count(
      .guesses, from: peer,
      as: APIError(
        .tooManyRequests, .tooManyGuesses, "Too many wrong codes; try again later.", retryAfterSeconds: seconds))
  }

  /// Returns nil for a code that is wrong, used or expired.
  private func join(_ code: String, by right: EntryRight, name: String, now: Int64) async throws -> DeviceIdentity? {
    var source = SystemRandomNumberGenerator()
    guard let code = ReadableCode.normalize(code) else { return nil }
    return try await storage.join(Self.digest(code), by: right, as: DeviceID(using: &source), name: name, now: now)
  }

  private func register(player: PlayerID, container: ContainerID, app: AppID, name: String) async throws -> Response {
    var source = SystemRandomNumberGenerator()
    let identity = DeviceIdentity(device: DeviceID(using: &source), player: player, container: container, app: app)
    let now = clock()
    try await storage.recordDevice(
      DeviceRecord(identity: identity, name: name, createdMilliseconds: now, seenMilliseconds: now))
    return try account(identity)
  }

  /// The response to a device that has become a player's, with its first token.
  func account(_ identity: DeviceIdentity) throws -> Response {
    let account = Account(
      device: identity.device, player: identity.player, container: identity.container,
      token: tokens.token(for: identity))
    return try Response(json: account, status: .created)
  }

  /// A code is looked up by its hash, so that the time of a lookup reveals nothing about the codes that exist.
  private static func digest(_ code: String) -> Data { Data(SHA256.hash(data: Data(code.utf8))) }

  static func name(_ name: String?) throws -> String {
    let name = name ?? ""
    if let objection = NameRule.device.objection(to: name) {
      throw APIError(.badRequest, .badRequest, "This can't be its name: \(objection).")
    }
    return name
  }
}
#endif
