#if Cloud
import Foundation
import KeepsakeReplication

@testable import KeepsakeServer

/// By what right something is asked for: with a game's key, or by a device of a game for a shared container.
enum AccountRight: Hashable, Sendable {
  case app(AppID)
  case shared(String, of: DeviceIdentity)
}

/// What a request about accounts asks for, with everything that a real one draws at random.
enum AccountRequest: Hashable, Sendable {
  case register(DeviceIdentity)
  /// With the device, container and player if they are new.
  case registerShared(DeviceIdentity, String, of: DeviceIdentity)
  case makePairing(Data, by: DeviceIdentity, expires: Int64)
  case join(Data, AccountRight, as: DeviceID)
  case makeRecovery(ContentHash, by: DeviceIdentity)
  case recover(ContentHash, next: ContentHash, AccountRight, as: DeviceID)
  case link(VerifiedIdentity, by: DeviceIdentity)
  case signIn(VerifiedIdentity, by: DeviceIdentity, as: DeviceID)
  case unlink(ContentHash, by: DeviceIdentity)
  case remove(DeviceIdentity, isLeaving: Bool)
  case delete(ContainerID)
  /// By the operator: what a game may do in a shared container.
  case entitle(AppID, String, ContainerAccess?)
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
    /// With the apps that they are of, or the right to the shared container.
    var devices: [DeviceID: AppID] = [:]
    var removed: Set<DeviceID> = []
    var recovery: RecoveryWay?
    var isDeleted = false
  }
  struct RecoveryWay: Hashable {
    var code: ContentHash
    var scope: AppID
    /// The one that made it, or that got it by using the one before.
    var device: DeviceID
    /// The code before, if it was used.
    var used: ContentHash?
  }
  private struct PairingWay: Hashable {
    var container: ContainerID
    var scope: AppID
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
  /// To which device of a game one of a shared container belongs.
  private struct Belonging: Hashable {
    var container: ContainerID
    var share: AppID
    var parent: ContainerID
    var parentDevice: DeviceID
  }
  private struct Entitled: Hashable {
    var app: AppID
    var share: AppID
  }
  private struct Link: Hashable {
    var parent: ContainerID
    var share: AppID
  }
  private struct Owner: Hashable {
    var parent: ContainerID
    var container: ContainerID
  }
  /// What a right comes to, once it is admitted.
  private struct Entry {
    var app: AppID
    var scope: AppID
    var parent: DeviceIdentity?
  }

  /// The shared containers' ids.
  private let shares: [String: AppID]
  private(set) var players: [ContainerID: Player] = [:]
  private var pairings: [Data: PairingWay] = [:]
  private var identities: [ContentHash: IdentityWay] = [:]
  private var uses: [ContentHash: Use] = [:]
  private var belongings: [DeviceID: Belonging] = [:]
  private var links: [Link: ContainerID] = [:]
  /// Who has, or had, which shared container. Only those count for others who have it, or a device in it.
  private var owners: Set<Owner> = []
  private var entitled: [Entitled: ContainerAccess] = [:]
  /// The rights that tokens have in the place of an app.
  private var grants: [AppID: Entitled] = [:]

  init(shares: [String: AppID], apps: [AppID]) {
    self.shares = shares
    for app in apps {
      for share in shares.values {
        let right = Entitled(app: app, share: share)
        grants[SharedGrant(app: app, share: share).id] = right
        entitled[right] = .readWrite
      }
    }
  }

  func identities(of container: ContainerID) -> Set<ContentHash> {
    Set(identities.filter { $0.value.container == container }.keys)
  }

  func isRefused(_ device: DeviceIdentity) -> Bool {
    guard let player = players[device.container] else { return false }
    return player.isDeleted || player.removed.contains(device.device)
  }

  /// The shared containers of a player of a game, with whether nobody else has them.
  func shared(of parent: ContainerID) -> [ContainerID: Bool] {
    Dictionary(
      uniqueKeysWithValues: owners.filter { $0.parent == parent }.map(\.container).map { container in
        (
          container,
          !links.contains { $0.value == container && $0.key.parent != parent }
            && !belongings.values.contains { $0.container == container && $0.parent != parent }
        )
      })
  }

  /// Returns the states that others may find while a request is carried out: a device is removed after those that it
  /// has in shared containers, one by one, and a player after their devices in containers that others have, too.
  func parts(of request: AccountRequest) -> [AccountModel] {
    var first: [DeviceID] = []
    var leaves = false
    switch request {
    case .remove(let device, let isLeaving):
      leaves = isLeaving
      first = belongings.filter { $0.value.parent == device.container && $0.value.parentDevice == device.device }
        .map(\.key)
    case .delete(let container):
      let shared = shared(of: container)
      first = belongings.filter { $0.value.parent == container && shared[$0.value.container] == false }.map(\.key)
    default: break
    }
    return first.reduce(into: [self]) { parts, device in
      parts += parts.map { part in
        var part = part
        if let belonging = belongings[device] { part.removeOne(device, of: belonging.container, leaves) }
        return part
      }
    }.dropFirst().map { $0 }
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
    case .registerShared(let new, let name, let parent):
      switch admitted(.shared(name, of: parent)) {
      case .failure(let refusal): return refusal.answer
      case .success(let entry): return register(new, entry)
      }
    case .makePairing(let code, let device, let expires):
      if let refusal = refusal(ofWriting: device) { return refusal }
      // A container has one, and a code that is too old is nobody's.
      pairings = pairings.filter { $0.value.container != device.container && $0.value.expires > now }
      pairings[code] = PairingWay(container: device.container, scope: scope(of: device.app), expires: expires)
      return .done
    case .join(let code, let right, let device):
      switch admitted(right) {
      case .failure(let refusal): return refusal.answer
      case .success(let entry):
        guard let way = pairings[code], way.scope == entry.scope else { return .nothing }
        pairings[code] = nil
        return way.expires > now ? add(device, entry, to: way.container) : .nothing
      }
    case .makeRecovery(let code, let device):
      if let refusal = refusal(ofWriting: device) { return refusal }
      let way = RecoveryWay(code: code, scope: scope(of: device.app), device: device.device)
      players[device.container]?.recovery = way
      return .done
    case .recover(let code, let next, let right, let device):
      switch admitted(right) {
      case .failure(let refusal): return refusal.answer
      case .success(let entry): return recover(code, next, entry, device)
      }
    case .link(let identity, let device):
      return refusal(ofWriting: device) ?? link(identity, device, now)
    case .signIn(let identity, let device, let new):
      return refusal(of: device) ?? signIn(identity, device, new, now)
    case .unlink(let identity, let device):
      if let refusal = refusal(ofWriting: device) { return refusal }
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
    case .entitle(let app, let name, let access):
      if let share = shares[name] { entitled[Entitled(app: app, share: share)] = access }
      return .done
    }
  }

  // MARK: Rights

  private struct Refusal: Error {
    var answer: AccountAnswer
  }

  private func scope(of app: AppID) -> AppID { grants[app]?.share ?? app }

  private func refusal(of device: DeviceIdentity) -> AccountAnswer? {
    if isRefused(device) { return .refused(.retired) }
    guard let right = grants[device.app], entitled[right] == nil else { return nil }
    return .refused(.notEntitled)
  }

  private func refusal(ofWriting device: DeviceIdentity) -> AccountAnswer? {
    if let refusal = refusal(of: device) { return refusal }
    return grants[device.app].flatMap { entitled[$0] } == .readOnly ? .refused(.readOnly) : nil
  }

  private func admitted(_ right: AccountRight) -> Result<Entry, Refusal> {
    switch right {
    case .app(let app): return .success(Entry(app: app, scope: app))
    case .shared(let name, let parent):
      if let refusal = refusal(of: parent) { return .failure(Refusal(answer: refusal)) }
      guard let share = shares[name], entitled[Entitled(app: parent.app, share: share)] != nil else {
        return .failure(Refusal(answer: .refused(.notEntitled)))
      }
      return .success(
        Entry(app: SharedGrant(app: parent.app, share: share).id, scope: share, parent: parent))
    }
  }

  // MARK: Rules

  private mutating func register(_ new: DeviceIdentity, _ entry: Entry) -> AccountAnswer {
    guard let parent = entry.parent else { return .nothing }
    var identity = new
    identity.app = entry.app
    if let known = links[Link(parent: parent.container, share: entry.scope)], let player = players[known] {
      (identity.container, identity.player) = (known, player.id)
    }
    players[identity.container, default: Player(id: identity.player)].devices[identity.device] = entry.app
    note(identity.device, in: identity.container, entry.scope, parent.container, parent.device)
    return .device(identity)
  }

  private mutating func note(
    _ device: DeviceID, in container: ContainerID, _ share: AppID, _ parent: ContainerID, _ parentDevice: DeviceID
  ) {
    belongings[device] = Belonging(container: container, share: share, parent: parent, parentDevice: parentDevice)
    links[Link(parent: parent, share: share)] = container
    owners.insert(Owner(parent: parent, container: container))
  }

  private mutating func add(_ device: DeviceID, _ entry: Entry, to container: ContainerID) -> AccountAnswer {
    guard let player = players[container], !player.isDeleted else { return .nothing }
    players[container]?.devices[device] = entry.app
    if let parent = entry.parent { note(device, in: container, entry.scope, parent.container, parent.device) }
    return .device(DeviceIdentity(device: device, player: player.id, container: container, app: entry.app))
  }

  private mutating func recover(
    _ code: ContentHash, _ next: ContentHash, _ entry: Entry, _ device: DeviceID
  ) -> AccountAnswer {
    // The same request again, after its answer was lost.
    for (container, player) in players {
      guard let way = player.recovery, way.used == code, way.code == next, way.scope == entry.scope,
        player.devices[way.device] != nil, belongs(way.device, to: entry.parent)
      else { continue }
      return .device(DeviceIdentity(device: way.device, player: player.id, container: container, app: entry.app))
    }
    guard let (container, player) = players.first(where: { $0.value.recovery?.code == code }) else { return .nothing }
    guard player.recovery?.scope == entry.scope else { return .refused(APIError.otherAppsCode.code) }
    players[container]?.recovery = RecoveryWay(code: next, scope: entry.scope, device: device, used: code)
    return add(device, entry, to: container)
  }

  private func belongs(_ device: DeviceID, to parent: DeviceIdentity?) -> Bool {
    guard let parent else { return true }
    let belonging = belongings[device]
    return belonging?.parent == parent.container && belonging?.parentDevice == parent.device
  }

  private mutating func link(_ identity: VerifiedIdentity, _ device: DeviceIdentity, _ now: Int64) -> AccountAnswer {
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
    let belonging = belongings[device.device]
    if let belonging { note(new, in: way.container, belonging.share, belonging.parent, belonging.parentDevice) }
    return add(new, Entry(app: device.app, scope: scope(of: device.app)), to: way.container)
  }

  private mutating func remove(_ device: DeviceIdentity, _ isLeaving: Bool) {
    // A device takes those with it that it has in shared containers.
    for (other, belonging) in belongings
    where belonging.parent == device.container && belonging.parentDevice == device.device {
      removeOne(other, of: belonging.container, isLeaving)
    }
    // Somebody who was removed by others isn't back with the next device.
    if !isLeaving, let belonging = belongings[device.device],
      !belongings.contains(where: {
        $0.key != device.device && $0.value.container == belonging.container && $0.value.parent == belonging.parent
      })
    {
      links = links.filter { $0.key.parent != belonging.parent || $0.value != belonging.container }
    }
    removeOne(device.device, of: device.container, isLeaving)
  }

  private mutating func removeOne(_ device: DeviceID, of container: ContainerID, _ isLeaving: Bool) {
    guard players[container]?.devices.removeValue(forKey: device) != nil else { return }
    players[container]?.removed.insert(device)
    belongings[device] = nil
    pairings = pairings.filter { $0.value.container != container }
    guard !isLeaving else { return }
    // What it made or has shown may be how it would come back.
    if players[container]?.recovery?.device == device { players[container]?.recovery = nil }
    identities = identities.filter { $0.value.container != container || $0.value.device != device }
  }

  private mutating func delete(_ container: ContainerID) {
    let shared = shared(of: container)
    for (one, isAlone) in shared where isAlone { deleteOne(one) }
    for (device, belonging) in belongings where belonging.parent == container {
      removeOne(device, of: belonging.container, false)
    }
    deleteOne(container)
  }

  private mutating func deleteOne(_ container: ContainerID) {
    guard let player = players[container] else { return }
    let devices = player.removed.union(player.devices.keys)
    players[container] = Player(id: player.id, removed: devices, isDeleted: true)
    links = links.filter { $0.key.parent != container && $0.value != container }
    owners = owners.filter { $0.parent != container && $0.container != container }
    belongings = belongings.filter { $0.value.parent != container && $0.value.container != container }
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
