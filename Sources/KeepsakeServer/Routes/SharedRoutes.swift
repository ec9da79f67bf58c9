#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication

/// Containers that the apps of a team share: a device of a game asks for one by the name that its studio gave it, with
/// the token that it has in the game. Everything else is done with the token that it gets there.
extension CloudRoutes {
  func addSharedRoutes(to router: RouterGroup<CloudContext>) {
    router.post("shared/{name}/devices") { request, context in
      let (parent, right) = try await right(of: request, context)
      try gate.rates.registration(from: gate.client(of: request, context), app: parent.app)
      let name = try await newName(of: request)
      var source = SystemRandomNumberGenerator()
      let new = DeviceIdentity(
        device: DeviceID(using: &source), player: PlayerID(using: &source), container: ContainerID(using: &source),
        app: right.app)
      return try account(try await storage.registerShared(new, named: name, by: right, now: clock()))
    }
    router.post("shared/{name}/pairing/join") { request, context in
      let (parent, right) = try await right(of: request, context)
      return try await join(request, context, right, of: parent.app)
    }
    router.post("shared/{name}/recovery/join") { request, context in
      let (parent, right) = try await right(of: request, context)
      return try await recover(request, context, right, of: parent.app) { $0 == right.scope }
    }
  }

  /// Returns the device of a game that asks for a shared container, and by what right.
  ///
  /// - Throws: `APIError.notEntitled` if its game may not use it, whether there is one or not.
  private func right(of request: Request, _ context: CloudContext) async throws -> (DeviceIdentity, EntryRight) {
    let parent = try await identity(of: request)
    // Or it could ask faster than its devices are removed.
    if leaving.contains(parent) { throw APIError.retired }
    let name = context.parameters.get("name") ?? ""
    guard let grant = appKeys.grant(of: parent.app, to: name) else { throw APIError.notEntitled }
    return (parent, EntryRight(grant, of: parent))
  }

  // MARK: What follows a player of a game

  /// How often something in shared containers is removed again, because more came meanwhile.
  private static var attempts: Int { 8 }

  /// Removes a device with its devices in shared containers, and ends its streams; nil if the container never had it.
  /// Repeating it changes nothing.
  ///
  /// - Parameter storage: Where the device is removed.
  func remove(
    _ device: DeviceID, of container: ContainerID, isLeaving: Bool = false, by storage: some DecidingStorage
  ) async throws -> Retirement? {
    let entry = leaving.enter(container, device)
    defer { leaving.end(entry) }
    try await self.storage.beginLeaving(container, device, now: clock())
    let moved = try await repeating {
      try await removeShared(of: container, device, isLeaving: isLeaving)
      return try await storage.retire(
        device, of: container, isLeaving: isLeaving, leavesShared: !isLeaving, rules: bankRules(of: container),
        now: clock())
    }
    events.end(device, of: container)
    partials.forget(device, of: container)
    return moved
  }

  /// Deletes everything of a player with what the player has in shared containers, and ends the streams.
  ///
  /// - Parameter delete: Deletes the container itself.
  @discardableResult
  func delete(_ container: ContainerID, by delete: () async throws -> Deletion) async throws -> Deletion {
    let entry = leaving.enter(container, nil)
    defer { leaving.end(entry) }
    try await storage.beginLeaving(container, nil, now: clock())
    let deletion = try await repeating {
      // From those that others have, too. What nobody else has is deleted in one transaction with the rest.
      let others = try await storage.sharedContainers(of: container).filter { !$0.isAlone }.map(\.container)
      try await removeShared(of: container, nil, isLeaving: false) { others.contains($0) }
      return try await delete()
    }
    for one in deletion.shared + [container] {
      events.end(nil, of: one)
      partials.forget(nil, of: one)
    }
    return deletion
  }

  /// Removes the devices in shared containers that belong to a device of a game, or to all of a player's in the game.
  ///
  /// - Parameter isMeant: Whether a shared container is one of those.
  private func removeShared(
    of parent: ContainerID, _ device: DeviceID?, isLeaving: Bool, in isMeant: (ContainerID) -> Bool = { _ in true }
  ) async throws {
    for one in try await storage.sharedDevices(of: parent, device) where isMeant(one.container) {
      let moved = try await storage.retire(
        one.device, of: one.container, isLeaving: isLeaving, rules: bankRules(of: one.container), now: clock())
      events.end(one.device, of: one.container)
      partials.forget(one.device, of: one.container)
      if let seq = moved?.seq { events.publish(seq, nil, of: one.container, from: nil) }
    }
  }

  private func repeating<Result>(_ body: () async throws -> Result) async throws -> Result {
    for _ in 0..<Self.attempts {
      do { return try await body() } catch is SharedLeft { continue }
    }
    throw APIError.overBudget("changes of this player's devices")
  }
}
#endif
