#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeSimulation

@testable import KeepsakeServer

/// Players, devices and strangers at one cloud: what they ask for is drawn from a seed, as are the order in which it
/// arrives and how often. Each answer is compared with the model's.
struct AccountSwarm {
  /// A cloud with two games of one team, which share two containers.
  struct Cloud: Sendable {
    static let team = "team"
    static let shared = ["purse", "heroes"]
    static let names = ["first-app", "second-app"]
    static let apps = names.map(AppID.init(ofKey:))

    let storage: any CloudStorage
    let registry: AppRegistry
    let keys: AppKeys
    /// The shared containers' ids.
    let shares: [String: AppID]

    init(_ storage: any CloudStorage, in folder: URL) throws {
      self.storage = storage
      registry = AppRegistry(file: folder.appendingPathComponent("apps"))
      try registry.createTeam(Self.team)
      for name in Self.names {
        _ = try registry.create(name, adopting: name)
        try registry.add(name, to: Self.team)
      }
      for name in Self.shared { try registry.share(name, in: Self.team) }
      let made = try registry.teams().flatMap(\.shares)
      shares = Dictionary(uniqueKeysWithValues: made.map { ($0.name, AppID(text: $0.id) ?? AppID(bytes: Data())) })
      keys = try AppKeys([], registry: registry)
    }

    func entitle(_ app: AppID, to name: String, _ access: ContainerAccess?) throws {
      // Each change is a file that is written and read.
      if keys.grant(of: app, to: name)?.access == access { return }
      let index = Self.apps.firstIndex(of: app) ?? 0
      try registry.entitle(Self.names[index], to: name, of: Self.team, access)
      keys.reload()
    }
  }
  private static let steps = 24...60
  private static let pairingMilliseconds: Int64 = 600_000
  private static let proofMilliseconds: Int64 = 900_000

  private let cloud: Cloud
  private let seed: UInt64
  private var random: SeededGenerator
  /// Several if two requests arrived together, and nothing has shown yet which one was first.
  private var models: Set<AccountModel>
  private var now: Int64 = 1_000_000
  private var made: UInt64 = 0

  /// Everything that anybody has ever held: what is no good any more is tried, too.
  private var devices: [DeviceIdentity] = []
  private var pairings: [(code: Data, by: DeviceIdentity)] = []
  private var codes: [(code: ContentHash, by: DeviceIdentity)] = []
  private var proofs: [VerifiedIdentity] = []
  private var requests: [AccountRequest] = []
  /// What brought each device to its player, except those that came with one.
  private var origins: [DeviceID: AccountRequest] = [:]
  /// What would show at once whether the last requests left a way that they must not leave.
  private var probes: [AccountRequest] = []
  /// What was asked and answered, for whoever looks for the reason.
  private(set) var story: [String] = []
  private(set) var problems: [String] = []
  /// How often each kind of answer was given.
  private(set) var answers: [String: Int] = [:]

  private var storage: any CloudStorage { cloud.storage }

  init(seed: UInt64, cloud: Cloud) {
    (self.seed, self.cloud) = (seed, cloud)
    models = [AccountModel(shares: cloud.shares, apps: Cloud.apps)]
    random = SeededGenerator(seed: seed)
  }

  mutating func run() async throws {
    for app in Cloud.apps {
      for name in Cloud.shared { try cloud.entitle(app, to: name, .readWrite) }
    }
    for _ in 0..<Int.random(in: Self.steps, using: &random) where problems.isEmpty {
      now += Int64.random(in: 0...(random.once(in: 10) ? 700_000 : 20_000), using: &random)
      let request = draw()
      // Two that arrive together, or one between two steps of the other: each order of them is right.
      let isTogether = random.once(in: 5)
      let second = isTogether || random.once(in: 5) ? rival(of: request) : nil
      if let second, second != request {
        // The one that comes within the other is the first.
        let isSecondWithin = random.once(in: 2)
        try await perform(
          isSecondWithin ? second : request, beside: isSecondWithin ? request : second, isTogether: isTogether)
        for request in [request, second].shuffled(using: &random) { probe(request) }
      } else {
        if case .remove = request { probe(request) }
        expect(try await perform(request), of: request)
      }
      if random.once(in: 6) { try await compare() }
    }
    if problems.isEmpty { try await compare() }
  }

  // MARK: Drawing

  private mutating func draw() -> AccountRequest {
    if let probe = probes.popLast(), random.once(in: 2) { return again(probe) }
    // Sent again, since its answer was lost or somebody has kept it.
    if random.once(in: 7), let known = requests.randomElement(using: &random) { return again(known) }
    let request = fresh()
    requests.append(request)
    return request
  }

  /// What comes beside a request: often what takes the ground from under it.
  private mutating func rival(of request: AccountRequest) -> AccountRequest {
    let device: DeviceIdentity? =
      switch request {
      case .makePairing(_, let device, _), .makeRecovery(_, let device), .link(_, let device),
        .signIn(_, let device, _), .unlink(_, let device), .registerShared(_, _, let device),
        .join(_, .shared(_, let device), _), .recover(_, _, .shared(_, let device), _):
        device
      default: nil
      }
    guard let device, random.once(in: 2) else { return draw() }
    return random.once(in: 4) ? .delete(device.container) : .remove(device, isLeaving: random.once(in: 2))
  }

  /// Keeps in mind what would show whether a request has left a way that is good for more than it should be.
  private mutating func probe(_ request: AccountRequest) {
    switch request {
    case .makePairing(let code, let device, _): probes.append(.join(code, right(like: device), as: identifier()))
    case .makeRecovery(let code, let device):
      let next = hash()
      codes.append((next, device))
      probes.append(.recover(code, next: next, right(like: device), as: identifier()))
    case .remove(let device, _): if let origin = origins[device.device] { probes.append(origin) }
    default: break
    }
  }

  /// The server draws the id of a new device each time.
  private mutating func again(_ request: AccountRequest) -> AccountRequest {
    switch request {
    case .registerShared(var new, let name, let parent):
      {
        (new.device, new.container, new.player) = (identifier(), identifier(), identifier())
        return .registerShared(new, name, of: parent)
      }()
    case .join(let code, let right, _): .join(code, right, as: identifier())
    case .recover(let code, let next, let right, _): .recover(code, next: next, right, as: identifier())
    case .signIn(let identity, let device, _): .signIn(identity, by: device, as: identifier())
    default: request
    }
  }

  private mutating func fresh() -> AccountRequest {
    guard devices.count > 1, let device = devices.randomElement(using: &random) else { return newPlayer() }
    switch Int.random(in: 0..<32, using: &random) {
    case 0, 1: return newPlayer()
    case 2..<5:
      let code = hash().bytes
      pairings.append((code, device))
      return .makePairing(code, by: device, expires: now + Self.pairingMilliseconds)
    case 5..<8:
      let known = pairings.randomElement(using: &random)
      return .join(known?.code ?? hash().bytes, right(like: known?.by), as: identifier())
    case 8, 9:
      let code = hash()
      codes.append((code, device))
      return .makeRecovery(code, by: device)
    case 10..<13:
      let (known, next) = (codes.randomElement(using: &random), hash())
      if let known { codes.append((next, known.by)) }
      return .recover(known?.code ?? hash(), next: next, right(like: known?.by), as: identifier())
    case 13..<16: return .link(proof(for: device), by: device)
    case 16..<20: return .signIn(proof(for: device), by: device, as: identifier())
    case 20: return .unlink(proof(for: device).id, by: device)
    case 21, 22: return .remove(device, isLeaving: random.once(in: 2))
    case 23..<28:
      let new = DeviceIdentity(
        device: identifier(), player: identifier(), container: identifier(), app: AppID(word: 0))
      return .registerShared(new, name(), of: parent())
    case 28, 29:
      let access = [nil, ContainerAccess.readOnly, .readWrite, .readWrite].randomElement(using: &random) ?? nil
      return .entitle(app(of: nil), name(), access)
    default: return random.once(in: 3) ? .delete(device.container) : newPlayer()
    }
  }

  private mutating func name() -> String { Cloud.shared.randomElement(using: &random) ?? "" }

  /// A device of a game, as everybody knows them.
  private mutating func parent() -> DeviceIdentity {
    let own = devices.filter { cloud.keys.grant($0.app) == nil }
    return own.randomElement(using: &random) ?? devices[0]
  }

  /// A right that is good for what this device has made, unless it is the other one.
  private mutating func right(like device: DeviceIdentity?) -> AccountRight {
    let share = device.flatMap { cloud.keys.grant($0.app)?.share }
    let name = share.flatMap { share in cloud.shares.first { $0.value == share }?.key }
    if let name, !random.once(in: 8) { return .shared(name, of: parent()) }
    if name == nil, random.once(in: 12) { return .shared(self.name(), of: parent()) }
    return .app(app(of: name == nil ? device?.app : nil))
  }

  private mutating func newPlayer() -> AccountRequest {
    let device = DeviceIdentity(
      device: identifier(), player: identifier(), container: identifier(), app: app(of: Cloud.apps[0]))
    devices.append(device)
    return .register(device)
  }

  /// Sometimes the other one.
  private mutating func app(of known: AppID?) -> AppID { random.once(in: 8) ? Cloud.apps[1] : known ?? Cloud.apps[0] }

  /// Whoever shows a proof in a shared container is somebody else there.
  private mutating func proof(for device: DeviceIdentity) -> VerifiedIdentity {
    let proof = proof()
    return cloud.keys.grant(device.app).map { proof.scoped(to: $0.share) } ?? proof
  }

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

  /// Between which steps of a request another one comes.
  private enum Pause: CaseIterable {
    case afterAdmission, whileRemoving
  }

  /// - Parameter between: Is asked to run what comes between two steps, where the request has several.
  private func perform(
    _ request: AccountRequest, between pause: (Pause) async throws -> Void = { _ in }
  ) async throws -> AccountAnswer {
    do {
      switch request {
      case .register(let device):
        try await storage.recordDevice(
          DeviceRecord(identity: device, name: "", createdMilliseconds: now, seenMilliseconds: now))
        return .done
      case .registerShared(var new, let name, let parent):
        let right = try await admit(.shared(name, of: parent))
        try await pause(.afterAdmission)
        new.app = right.app
        return .device(try await storage.registerShared(new, named: "", by: right, now: now))
      case .makePairing(let code, let device, let expires):
        try await admit(device, isWriting: true)
        try await pause(.afterAdmission)
        let pairing = Pairing(
          code: code, scope: cloud.keys.scope(of: device.app), player: device.player, container: device.container,
          expiresMilliseconds: expires)
        try await storage.putPairing(pairing, for: device.device, now: now)
        return .done
      case .join(let code, let right, let device):
        let right = try await admit(right)
        try await pause(.afterAdmission)
        return answer(try await storage.join(code, by: right, as: device, name: "", now: now))
      case .makeRecovery(let code, let device):
        try await admit(device, isWriting: true)
        try await pause(.afterAdmission)
        try await storage.putRecovery(code, by: device, scope: cloud.keys.scope(of: device.app), now: now)
        return .done
      case .recover(let code, let next, let right, let device):
        let right = try await admit(right)
        try await pause(.afterAdmission)
        let recovery = Recovery(code: code, next: next, right: right, name: "")
        return answer(try await storage.recover(recovery, as: device, now: now) { $0 == right.scope })
      case .link(let identity, let device):
        try await admit(device, isWriting: true)
        try await pause(.afterAdmission)
        switch try await storage.link(identity, to: device, now: now) {
        case .linked: return .done
        case .taken: return .taken
        case .used: return .used
        case .tooMany: return .tooMany
        }
      case .signIn(let identity, let device, let new):
        try await admit(device)
        try await pause(.afterAdmission)
        switch try await storage.signIn(with: identity, by: device, as: NewDevice(device: new, name: ""), now: now) {
        case .joined(let joined): return .device(joined)
        case .unknown: return .unknown
        case .own: return .own
        case .used: return .used
        }
      case .unlink(let identity, let device):
        try await admit(device, isWriting: true)
        try await pause(.afterAdmission)
        return try await storage.unlink(identity, by: device) ? .done : .nothing
      case .remove(let device, let isLeaving):
        // A route admits nobody to a player who was deleted; one who is deleted meanwhile has no device any more.
        guard try await !storage.isRetired(device) else { return .done }
        try await pause(.afterAdmission)
        do {
          try await repeating {
            try await removeShared(of: device.container, device.device, isLeaving)
            try await pause(.whileRemoving)
            _ = try await storage.retire(
              device.device, of: device.container, isLeaving: isLeaving, leavesShared: !isLeaving, now: now)
          }
        } catch let error as APIError where error.code == .retired {}
        return .done
      case .delete(let container):
        try await repeating {
          let others = try await storage.sharedContainers(of: container).filter { !$0.isAlone }.map(\.container)
          try await removeShared(of: container, nil, false) { others.contains($0) }
          try await pause(.whileRemoving)
          try await storage.delete(container, now: now)
        }
        return .done
      case .entitle(let app, let name, let access):
        try cloud.entitle(app, to: name, access)
        return .done
      }
    } catch let error as APIError {
      return .refused(error.code)
    }
  }

  // As the routes do it.

  private func admit(_ device: DeviceIdentity, isWriting: Bool = false) async throws {
    if try await storage.isRetired(device) { throw APIError.retired }
    if let refusal = cloud.keys.refusal(of: device.app) { throw APIError(refusal) }
    if isWriting, cloud.keys.access(of: device.app) == .readOnly { throw APIError.readOnly }
  }

  private func admit(_ right: AccountRight) async throws -> EntryRight {
    switch right {
    case .app(let app): return EntryRight(app)
    case .shared(let name, let parent):
      try await admit(parent)
      guard let grant = cloud.keys.grant(of: parent.app, to: name) else { throw APIError.notEntitled }
      return EntryRight(grant, of: parent)
    }
  }

  private func removeShared(
    of parent: ContainerID, _ device: DeviceID?, _ isLeaving: Bool, in isMeant: (ContainerID) -> Bool = { _ in true }
  ) async throws {
    for one in try await storage.sharedDevices(of: parent, device) where isMeant(one.container) {
      do {
        _ = try await storage.retire(one.device, of: one.container, isLeaving: isLeaving, now: now)
      } catch let error as APIError where error.code == .retired {}
    }
  }

  private func repeating(_ body: () async throws -> Void) async throws {
    while true {
      do { return try await body() } catch is SharedLeft { continue }
    }
  }

  private func answer(_ device: DeviceIdentity?) -> AccountAnswer { device.map(AccountAnswer.device) ?? .nothing }

  private mutating func perform(
    _ first: AccountRequest, beside second: AccountRequest, isTogether: Bool
  ) async throws {
    let place = Pause.allCases.randomElement(using: &random) ?? .afterAdmission
    let given = try await isTogether ? performAtOnce(first, second) : perform(first, within: second, at: place)
    story.append(
      "\(now) \(isTogether ? "together" : "within, \(place)"): \(first) -> \(given.0); \(second) -> \(given.1)")
    var fitting: Set<AccountModel> = []
    for model in models {
      for var begun in [model] + model.parts(of: second) {
        if given == (begun.apply(first, now: now), begun.apply(second, now: now)) { fitting.insert(begun) }
      }
      for var begun in [model] + model.parts(of: first) {
        let early = begun.apply(second, now: now)
        if given == (begun.apply(first, now: now), early) { fitting.insert(begun) }
      }
    }
    if fitting.isEmpty { problems.append("neither order gives \(given)") } else { models = fitting }
    for (request, answer) in [(first, given.0), (second, given.1)] { note(answer, of: request) }
    if problems.isEmpty { try await compare() }
  }

  private func performAtOnce(
    _ first: AccountRequest, _ second: AccountRequest
  ) async throws -> (AccountAnswer, AccountAnswer) {
    async let one = perform(first)
    async let other = perform(second)
    return try await (one, other)
  }

  /// Performs one between two steps of the other or, if that has no such steps, after it.
  private func perform(
    _ inner: AccountRequest, within outer: AccountRequest, at place: Pause
  ) async throws -> (AccountAnswer, AccountAnswer) {
    var given: AccountAnswer?
    // What is repeated comes there again.
    let last = try await perform(outer) { if $0 == place, given == nil { given = try await perform(inner) } }
    if let given { return (given, last) }
    return (try await perform(inner), last)
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
    guard case .device(let device) = answer else { return }
    origins[device.device] = request
    // One that has just come goes again.
    if random.once(in: 8) { probes.append(.remove(device, isLeaving: random.once(in: 2))) }
    if !devices.contains(device) { devices.append(device) }
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
    for container in model.players.keys {
      let shared = try await storage.sharedContainers(of: container)
      let places = Dictionary(shared.map { ($0.container, $0.isAlone) }) { $1 }
      if places != model.shared(of: container) { found.append("\(container) has other shared containers") }
    }
    for device in devices where try await storage.isRetired(device) != model.isRefused(device) {
      found.append("\(device.device) is \(model.isRefused(device) ? "still admitted" : "refused")")
    }
    return found
  }
}
#endif
