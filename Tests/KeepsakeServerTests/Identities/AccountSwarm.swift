#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeSimulation

@testable import KeepsakeServer

/// Players, devices and strangers at one cloud: what they ask for is drawn from a seed, as are the order in which it
/// arrives and how often. Each answer is compared with the model's.
struct AccountSwarm {
  /// Two games on one server.
  private static let apps = [AppID(ofKey: "first-app"), AppID(ofKey: "second-app")]
  private static let steps = 24...60
  private static let pairingMilliseconds: Int64 = 600_000
  private static let proofMilliseconds: Int64 = 900_000

  private let storage: SQLiteCloudStorage
  private let seed: UInt64
  private var random: SeededGenerator
  /// Several if two requests arrived together, and nothing has shown yet which one was first.
  private var models: Set<AccountModel> = [AccountModel()]
  private var now: Int64 = 1_000_000
  private var made: UInt64 = 0

  /// Everything that anybody has ever held: what is no good any more is tried, too.
  private var devices: [DeviceIdentity] = []
  private var pairings: [(code: Data, app: AppID)] = []
  private var codes: [(code: ContentHash, app: AppID)] = []
  private var proofs: [VerifiedIdentity] = []
  private var requests: [AccountRequest] = []
  /// What was asked and answered, for whoever looks for the reason.
  private(set) var story: [String] = []
  private(set) var problems: [String] = []
  /// How often each kind of answer was given.
  private(set) var answers: [String: Int] = [:]

  init(seed: UInt64, storage: SQLiteCloudStorage) {
    (self.seed, self.storage) = (seed, storage)
    random = SeededGenerator(seed: seed)
  }

  mutating func run() async throws {
    for _ in 0..<Int.random(in: Self.steps, using: &random) where problems.isEmpty {
      now += Int64.random(in: 0...(random.once(in: 10) ? 700_000 : 20_000), using: &random)
      let request = draw()
      // Two that arrive together: each order of them is right.
      let second = random.once(in: 5) ? draw() : nil
      if let second, second != request {
        try await perform(request, beside: second)
      } else {
        expect(try await perform(request), of: request)
      }
      if random.once(in: 6) { try await compare() }
    }
    if problems.isEmpty { try await compare() }
  }

  // MARK: Drawing

  private mutating func draw() -> AccountRequest {
    // Sent again, since its answer was lost or somebody has kept it.
    if random.once(in: 7), let known = requests.randomElement(using: &random) { return again(known) }
    let request = fresh()
    requests.append(request)
    return request
  }

  /// The server draws the id of a new device each time.
  private mutating func again(_ request: AccountRequest) -> AccountRequest {
    switch request {
    case .join(let code, let app, _): .join(code, app: app, as: identifier())
    case .recover(let code, let next, let app, _): .recover(code, next: next, app: app, as: identifier())
    case .signIn(let identity, let device, _): .signIn(identity, by: device, as: identifier())
    default: request
    }
  }

  private mutating func fresh() -> AccountRequest {
    guard devices.count > 1, let device = devices.randomElement(using: &random) else { return newPlayer() }
    switch Int.random(in: 0..<24, using: &random) {
    case 0, 1: return newPlayer()
    case 2..<5:
      let code = hash().bytes
      pairings.append((code, device.app))
      return .makePairing(code, by: device, expires: now + Self.pairingMilliseconds)
    case 5..<8:
      let known = pairings.randomElement(using: &random)
      return .join(known?.code ?? hash().bytes, app: app(of: known?.app), as: identifier())
    case 8, 9:
      let code = hash()
      codes.append((code, device.app))
      return .makeRecovery(code, by: device)
    case 10..<13:
      let (known, next) = (codes.randomElement(using: &random), hash())
      let app = app(of: known?.app)
      codes.append((next, app))
      return .recover(known?.code ?? hash(), next: next, app: app, as: identifier())
    case 13..<16: return .link(proof(), by: device)
    case 16..<20: return .signIn(proof(), by: device, as: identifier())
    case 20: return .unlink(proof().id, by: device)
    case 21, 22: return .remove(device, isLeaving: random.once(in: 2))
    default: return random.once(in: 3) ? .delete(device.container) : newPlayer()
    }
  }

  private mutating func newPlayer() -> AccountRequest {
    let device = DeviceIdentity(
      device: identifier(), player: identifier(), container: identifier(), app: app(of: Self.apps[0]))
    devices.append(device)
    return .register(device)
  }

  /// Sometimes the other one.
  private mutating func app(of known: AppID?) -> AppID { random.once(in: 8) ? Self.apps[1] : known ?? Self.apps[0] }

  private mutating func proof() -> VerifiedIdentity {
    if random.once(in: 3), let shown = proofs.randomElement(using: &random) { return shown }
    let person = Int.random(in: 0..<3, using: &random)
    var proof = VerifiedIdentity(
      id: VerifiedIdentity.id(of: "person \(person)", at: "\(seed)", named: "login"), issuer: "login")
    if random.once(in: 2) { proof.uses = [.init(key: hash(), expiresMilliseconds: now + Self.proofMilliseconds)] }
    proofs.append(proof)
    return proof
  }

  private mutating func identifier<Kind>() -> Identifier<Kind> {
    made += 1
    return Identifier(high: seed &+ 1, low: made)
  }

  private mutating func hash() -> ContentHash {
    made += 1
    return ContentHash(of: Data("\(seed) \(made)".utf8))
  }

  // MARK: Asking

  private func perform(_ request: AccountRequest) async throws -> AccountAnswer {
    do {
      switch request {
      case .register(let device):
        try await storage.recordDevice(
          DeviceRecord(identity: device, name: "", createdMilliseconds: now, seenMilliseconds: now))
        return .done
      case .makePairing(let code, let device, let expires):
        let pairing = Pairing(
          code: code, app: device.app, player: device.player, container: device.container,
          expiresMilliseconds: expires)
        try await storage.putPairing(pairing, for: device.device, now: now)
        return .done
      case .join(let code, let app, let device):
        return answer(try await storage.join(code, app: app, as: device, name: "", now: now))
      case .makeRecovery(let code, let device):
        try await storage.putRecovery(code, by: device, now: now)
        return .done
      case .recover(let code, let next, let app, let device):
        let recovery = Recovery(code: code, next: next, app: app, name: "")
        return answer(try await storage.recover(recovery, as: device, now: now) { $0 == app })
      case .link(let identity, let device):
        switch try await storage.link(identity, to: device, now: now) {
        case .linked: return .done
        case .taken: return .taken
        case .used: return .used
        case .tooMany: return .tooMany
        }
      case .signIn(let identity, let device, let new):
        switch try await storage.signIn(with: identity, by: device, as: NewDevice(device: new, name: ""), now: now) {
        case .joined(let joined): return .device(joined)
        case .unknown: return .unknown
        case .own: return .own
        case .used: return .used
        }
      case .unlink(let identity, let device):
        return try await storage.unlink(identity, by: device) ? .done : .nothing
      case .remove(let device, let isLeaving):
        // A route admits nobody to a player who was deleted; one who is deleted meanwhile has no device any more.
        guard try await !storage.isRetired(device) else { return .done }
        do {
          _ = try await storage.retire(device.device, of: device.container, isLeaving: isLeaving, now: now)
        } catch let error as APIError where error.code == .retired {}
        return .done
      case .delete(let container):
        try await storage.delete(container, now: now)
        return .done
      }
    } catch let error as APIError {
      return .refused(error.code)
    }
  }

  private func answer(_ device: DeviceIdentity?) -> AccountAnswer { device.map(AccountAnswer.device) ?? .nothing }

  private mutating func perform(_ first: AccountRequest, beside second: AccountRequest) async throws {
    let swarm = self
    async let one = swarm.perform(first)
    async let other = swarm.perform(second)
    let given = try await (one, other)
    story.append("\(now) together: \(first) -> \(given.0); \(second) -> \(given.1)")
    var fitting: Set<AccountModel> = []
    for model in models {
      var (forward, backward) = (model, model)
      if given == (forward.apply(first, now: now), forward.apply(second, now: now)) { fitting.insert(forward) }
      let late = backward.apply(second, now: now)
      if given == (backward.apply(first, now: now), late) { fitting.insert(backward) }
    }
    if fitting.isEmpty { problems.append("neither order gives \(given)") } else { models = fitting }
    for (request, answer) in [(first, given.0), (second, given.1)] { note(answer, of: request) }
    if problems.isEmpty { try await compare() }
  }

  private mutating func expect(_ given: AccountAnswer, of request: AccountRequest) {
    story.append("\(now) \(request) -> \(given)")
    var (fitting, right): (Set<AccountModel>, Set<AccountAnswer>) = ([], [])
    for var model in models {
      let answer = model.apply(request, now: now)
      right.insert(answer)
      if answer == given { fitting.insert(model) }
    }
    if fitting.isEmpty { problems.append("\(request): \(given), not \(right)") } else { models = fitting }
    note(given, of: request)
  }

  private mutating func note(_ answer: AccountAnswer, of request: AccountRequest) {
    let name = String("\(request)".prefix { $0 != "(" })
    answers["\(name) \("\(answer)".prefix { $0 != "(" })", default: 0] += 1
    if case .device(let device) = answer, !devices.contains(device) { devices.append(device) }
  }

  // MARK: Comparing

  /// Compares what is stored of every player, and what each device that ever was may do.
  private mutating func compare() async throws {
    var (fitting, found): (Set<AccountModel>, [String]) = ([], [])
    for model in models {
      let differences = try await differences(from: model)
      if differences.isEmpty { fitting.insert(model) }
      found = differences
    }
    if fitting.isEmpty { problems += found } else { models = fitting }
  }

  private func differences(from model: AccountModel) async throws -> [String] {
    var found: [String] = []
    for (container, player) in model.players {
      let stored = try await storage.devices(of: container)
      let devices = Dictionary(uniqueKeysWithValues: stored.map { ($0.identity.device, $0.identity.app) })
      if devices != player.devices {
        found.append("\(container) has \(devices.keys.sorted()), not \(player.devices.keys.sorted())")
      }
      if stored.contains(where: { $0.identity.player != player.id }) { found.append("a device is somebody else's") }
      let recovery = try await storage.recovery(of: container)
      if recovery.digest != player.recovery?.code { found.append("\(container) has another recovery code") }
      let identities = try await storage.identities(of: container).map(\.id)
      if Set(identities) != model.identities(of: container) || identities.count != recovery.identities {
        found.append("\(container) has other identities")
      }
    }
    for device in devices where try await storage.isRetired(device) != model.isRefused(device) {
      found.append("\(device.device) is \(model.isRefused(device) ? "still admitted" : "refused")")
    }
    return found
  }
}
#endif
