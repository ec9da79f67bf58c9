#if Cloud
import Foundation
import KeepsakeReplication

@testable import KeepsakeServer

/// What a request about accounts asks for, with everything that a real one draws at random.
enum AccountRequest: Hashable, Sendable {
  case register(DeviceIdentity)
  case makePairing(Data, by: DeviceIdentity, expires: Int64)
  case join(Data, app: AppID, as: DeviceID)
  case makeRecovery(ContentHash, by: DeviceIdentity)
  case recover(ContentHash, next: ContentHash, app: AppID, as: DeviceID)
  case link(VerifiedIdentity, by: DeviceIdentity)
  case signIn(VerifiedIdentity, by: DeviceIdentity, as: DeviceID)
  case unlink(ContentHash, by: DeviceIdentity)
  case remove(DeviceIdentity, isLeaving: Bool)
  case delete(ContainerID)
}

/// What came of it.
enum AccountAnswer: Hashable, Sendable {
  case done
  case nothing
  case device(DeviceIdentity)
  case refused(APIError.Code)
  case taken, used, unknown, own, tooMany
}

/// What players, devices and the ways to them should be, in dictionaries: a second statement of the rules, with which
/// the storage is compared.
struct AccountModel: Hashable {
  struct Player: Hashable {
    var id: PlayerID
    /// With the apps that they are of.
    var devices: [DeviceID: AppID] = [:]
    var removed: Set<DeviceID> = []
    var recovery: RecoveryWay?
    var isDeleted = false
  }
  struct RecoveryWay: Hashable {
    var code: ContentHash
    var app: AppID
    /// The one that made it, or that got it by using the one before.
    var device: DeviceID
    /// The code before, if it was used.
    var used: ContentHash?
  }
  private struct PairingWay: Hashable {
    var container: ContainerID
    var app: AppID
    var expires: Int64
  }
  private struct IdentityWay: Hashable {
    var container: ContainerID
    var issuer: String
    /// The one that has shown it last.
    var device: DeviceID
    var joiner: DeviceID?
    var joined: DeviceID?
  }
  private struct Use: Hashable {
    /// Nil once its player was deleted: it stays used, by nobody.
    var device: DeviceID?
    var expires: Int64
  }

  private(set) var players: [ContainerID: Player] = [:]
  private var pairings: [Data: PairingWay] = [:]
  private var identities: [ContentHash: IdentityWay] = [:]
  private var uses: [ContentHash: Use] = [:]

  func identities(of container: ContainerID) -> Set<ContentHash> {
    Set(identities.filter { $0.value.container == container }.keys)
  }

  func isRefused(_ device: DeviceIdentity) -> Bool {
    guard let player = players[device.container] else { return false }
    return player.isDeleted || player.removed.contains(device.device)
  }

  /// Changes the model as the cloud should be changed, and returns what the cloud should answer.
  mutating func apply(_ request: AccountRequest, now: Int64) -> AccountAnswer {
    switch request {
    case .register(let device):
      // The same again says only that the device was here.
      if players[device.container] == nil {
        players[device.container] = Player(id: device.player, devices: [device.device: device.app])
      }
      return .done
    case .makePairing(let code, let device, let expires):
      if isRefused(device) { return .refused(.retired) }
      // A container has one, and a code that is too old is nobody's.
      pairings = pairings.filter { $0.value.container != device.container && $0.value.expires > now }
      pairings[code] = PairingWay(container: device.container, app: device.app, expires: expires)
      return .done
    case .join(let code, let app, let device):
      guard let way = pairings[code], way.app == app else { return .nothing }
      pairings[code] = nil
      return way.expires > now ? add(device, of: app, to: way.container) : .nothing
    case .makeRecovery(let code, let device):
      if isRefused(device) { return .refused(.retired) }
      players[device.container]?.recovery = RecoveryWay(code: code, app: device.app, device: device.device)
      return .done
    case .recover(let code, let next, let app, let device): return recover(code, next, app, device)
    case .link(let identity, let device): return link(identity, device, now)
    case .signIn(let identity, let device, let new): return signIn(identity, device, new, now)
    case .unlink(let identity, let device):
      if isRefused(device) { return .refused(.retired) }
      guard identities[identity]?.container == device.container else { return .nothing }
      identities[identity] = nil
      return .done
    case .remove(let device, let isLeaving):
      remove(device, isLeaving)
      return .done
    case .delete(let container):
      if players[container]?.isDeleted == true { return .refused(.retired) }
      delete(container)
      return .done
    }
  }

  // MARK: Rules

  private mutating func add(_ device: DeviceID, of app: AppID, to container: ContainerID) -> AccountAnswer {
    guard let player = players[container], !player.isDeleted else { return .nothing }
    players[container]?.devices[device] = app
    return .device(DeviceIdentity(device: device, player: player.id, container: container, app: app))
  }

  private mutating func recover(
    _ code: ContentHash, _ next: ContentHash, _ app: AppID, _ device: DeviceID
  ) -> AccountAnswer {
    // The same request again, after its answer was lost.
    for (container, player) in players {
      guard let way = player.recovery, way.used == code, way.code == next, way.app == app,
        player.devices[way.device] != nil
      else { continue }
      return .device(DeviceIdentity(device: way.device, player: player.id, container: container, app: app))
    }
    guard let (container, player) = players.first(where: { $0.value.recovery?.code == code }) else { return .nothing }
    guard player.recovery?.app == app else { return .refused(APIError.otherAppsCode.code) }
    players[container]?.recovery = RecoveryWay(code: next, app: app, device: device, used: code)
    return add(device, of: app, to: container)
  }

  private mutating func link(_ identity: VerifiedIdentity, _ device: DeviceIdentity, _ now: Int64) -> AccountAnswer {
    if isRefused(device) { return .refused(.retired) }
    guard take(identity.uses, device.device, now) else { return .used }
    let hadEffect = identity.uses.contains { isUsed($0.effective.key, now) }
    if let way = identities[identity.id] {
      guard way.container == device.container else { return .taken }
      take(effects(of: identity), device.device, now)
      identities[identity.id]?.device = device.device
      return .done
    }
    if hadEffect { return .used }
    guard identities(of: device.container).count < ServerLimits.identitiesPerPlayer else { return .tooMany }
    take(effects(of: identity), device.device, now)
    identities[identity.id] = IdentityWay(
      container: device.container, issuer: identity.issuer, device: device.device)
    return .done
  }

  private mutating func signIn(
    _ identity: VerifiedIdentity, _ device: DeviceIdentity, _ new: DeviceID, _ now: Int64
  ) -> AccountAnswer {
    if isRefused(device) { return .refused(.retired) }
    guard take(identity.uses, device.device, now) else { return .used }
    let hadEffect = identity.uses.contains { isUsed($0.effective.key, now) }
    guard let way = identities[identity.id], let player = players[way.container] else { return .unknown }
    guard way.container != device.container else { return .own }
    take(effects(of: identity), device.device, now)
    if way.joiner == device.device, let joined = way.joined, !player.removed.contains(joined) {
      return .device(DeviceIdentity(device: joined, player: player.id, container: way.container, app: device.app))
    }
    if hadEffect { return .used }
    identities[identity.id]?.device = new
    identities[identity.id]?.joiner = device.device
    identities[identity.id]?.joined = new
    return add(new, of: device.app, to: way.container)
  }

  private mutating func remove(_ device: DeviceIdentity, _ isLeaving: Bool) {
    guard players[device.container]?.devices.removeValue(forKey: device.device) != nil else { return }
    players[device.container]?.removed.insert(device.device)
    pairings = pairings.filter { $0.value.container != device.container }
    guard !isLeaving else { return }
    // What it made or has shown may be how it would come back.
    if players[device.container]?.recovery?.device == device.device { players[device.container]?.recovery = nil }
    identities = identities.filter { $0.value.container != device.container || $0.value.device != device.device }
  }

  private mutating func delete(_ container: ContainerID) {
    guard let player = players[container] else { return }
    let devices = player.removed.union(player.devices.keys)
    players[container] = Player(id: player.id, removed: devices, isDeleted: true)
    pairings = pairings.filter { $0.value.container != container }
    identities = identities.filter { $0.value.container != container }
    for (key, way) in identities where way.joiner.map(devices.contains) ?? false {
      identities[key]?.joiner = nil
      identities[key]?.joined = nil
    }
    for (key, use) in uses where use.device.map(devices.contains) ?? false { uses[key]?.device = nil }
  }

  // MARK: Proofs that may be used once

  private func effects(of identity: VerifiedIdentity) -> [VerifiedIdentity.Use] { identity.uses.map(\.effective) }

  private func isUsed(_ key: ContentHash, _ now: Int64) -> Bool { uses[key].map { $0.expires > now } ?? false }

  /// Returns false, and takes none, if one of them is another device's.
  @discardableResult
  private mutating func take(_ wanted: [VerifiedIdentity.Use], _ device: DeviceID, _ now: Int64) -> Bool {
    guard wanted.allSatisfy({ !isUsed($0.key, now) || uses[$0.key]?.device == device }) else { return false }
    for use in wanted where !isUsed(use.key, now) {
      uses[use.key] = Use(device: device, expires: use.expiresMilliseconds)
    }
    return true
  }
}
#endif
