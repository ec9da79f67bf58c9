#if Cloud
import Foundation
import HTTPTypes
import Hummingbird
import KeepsakeReplication

/// Finding players, their devices, bans, and the end of everything.
extension AdminRoutes {
  private struct Player: Encodable {
    var player: PlayerID
    var devices: [PlayerExport.Line.Device]
    var usedBytes: Int64
    var identities: [LinkedIdentity]
    var ban: Ban?
    /// When the player's recovery code was made.
    var recoveryCodeMilliseconds: Int64?
    /// The shared containers that the player has in this game; nil for none.
    var shared: [Shared]?
    /// Of a shared container, the players of games who have it; nil for a player of a game.
    var parents: [Parent]?
  }
  private struct Shared: Encodable {
    /// By which games ask for it; nil if the registry of apps doesn't have it any more.
    var name: String?
    /// The container's id, of all players, as `keepsake team list` shows it.
    var share: String
    var container: ContainerID
    /// By which the container is found.
    var player: PlayerID
  }
  private struct Parent: Encodable {
    var container: ContainerID
    /// Nil if none of the player's devices is left.
    var player: PlayerID?
    var app: String?
  }
  private struct Players: Encodable {
    var players: [Player]
  }
  private struct Devices: Encodable {
    var devices: [PlayerExport.Line.Device]
  }
  private struct Reason: Decodable {
    var reason: String
  }
  private struct Deleted: Encodable {
    var deleted = true
    /// Whether the files of contents are gone, and the database's have nothing of it any more, also where SQLite keeps
    /// older copies. Never so with PostgreSQL, whose files are another program's.
    var erased: Bool
  }

  var playerRoutes: [Route] {
    [
      Route(method: .get, path: "players", scope: .read, act: "player.find") { try await find($0) },
      Route(method: .get, path: "players/{player}", scope: .read, act: "player.show") { call in
        try Response(json: try await show(call.player))
      },
      Route(method: .get, path: "players/{player}/devices", scope: .read, act: "device.list") { call in
        try Response(json: Devices(devices: try await devices(of: call.player)))
      },
      Route(method: .delete, path: "players/{player}/devices/{device}", scope: .devices, act: "device.remove") {
        try await removeDevice($0)
      },
      Route(
        method: .delete, path: "players/{player}/devices/{device}/set-back", scope: .devices, act: "device.clear"
      ) { call in
        let (player, device) = (try call.player, try call.device())
        call.about(device)
        guard try await call.storage.clearSetBack(of: device, in: player.container) else {
          throw APIError(.notFound, .notFound, "This player has no such device.")
        }
        return Response(status: .noContent)
      },
      Route(
        method: .delete, path: "players/{player}/identities/{identity}", scope: .devices, act: "identity.unlink"
      ) { call in
        let (player, identity) = (try call.player, try call.identity())
        call.storage.entry.subject = ContentHash(of: Data("\(identity)".utf8))
        try await storage.unlink(identity, of: player.container, auditing: call.storage.entry)
        call.storage.written()
        return Response(status: .noContent)
      },
      Route(method: .put, path: "players/{player}/ban", scope: .bans, act: "player.ban") { try await ban($0) },
      Route(method: .delete, path: "players/{player}/ban", scope: .bans, act: "player.unban") { call in
        let player = try call.player
        try await storage.setBan(nil, of: player.container, auditing: call.storage.entry)
        call.storage.written()
        return Response(status: .noContent)
      },
      Route(method: .get, path: "players/{player}/export", scope: .export, act: "player.export") {
        try await export($0)
      },
      Route(method: .delete, path: "players/{player}", scope: .delete, act: "player.delete") {
        try await delete($0)
      },
    ]
  }

  private func find(_ call: AdminCall) async throws -> Response {
    let query: PlayerQuery
    switch (call.query("player"), call.query("device")) {
    // The log has who was asked for, also if nobody is found.
    case (_?, nil):
      let player: PlayerID = try Self.id(call.query("player"))
      call.storage.entry.player = AuditEntry.hash(player)
      query = .player(player)
    case (nil, _?):
      let device: DeviceID = try Self.id(call.query("device"))
      call.about(device)
      query = .device(device)
    default:
      throw APIError(.badRequest, .badRequest, "Ask for players by one of the parameters player and device.")
    }
    let found = try await storage.places(query).filter { call.key.allows($0.apps) }
    if let first = found.first { call.storage.entry.player = AuditEntry.hash(first.player) }
    var players: [Player] = []
    for place in found { players.append(try await show(place)) }
    return try Response(json: Players(players: players))
  }

  private static func id<Kind>(_ text: String?) throws -> Identifier<Kind> {
    guard let id = text.flatMap({ Identifier<Kind>($0) }) else {
      throw APIError(.badRequest, .badRequest, "An id has 32 hexadecimal digits.")
    }
    return id
  }

  private func show(_ place: AdminPlace) async throws -> Player {
    let container = place.container
    let shared = try await storage.sharedContainers(of: container).map {
      Shared(
        name: cloud.appKeys.name(of: $0.share), share: $0.share.text, container: $0.container, player: $0.player)
    }
    let parents = try await storage.sharedParents(of: container).map {
      Parent(container: $0.container, player: $0.player, app: $0.app?.text)
    }
    return Player(
      player: place.player, devices: try await devices(of: place),
      usedBytes: try await storage.usedBytes(of: container),
      identities: try await storage.identities(of: container), ban: storage.ban(of: container),
      recoveryCodeMilliseconds: try await storage.recovery(of: container).createdMilliseconds,
      shared: shared.isEmpty ? nil : shared, parents: parents.isEmpty ? nil : parents)
  }

  private func devices(of place: AdminPlace) async throws -> [PlayerExport.Line.Device] {
    try await storage.devices(of: place.container).compactMap { PlayerExport.Line($0).device }
  }

  private func removeDevice(_ call: AdminCall) async throws -> Response {
    let (player, device) = (try call.player, try call.device())
    call.about(device)
    guard let moved = try await cloud.remove(device, of: player.container, by: call.storage) else {
      throw APIError(.notFound, .notFound, "This player has no such device.")
    }
    if let seq = moved.seq { cloud.events.publish(seq, nil, of: player.container, from: nil) }
    return Response(status: .noContent)
  }

  private func ban(_ call: AdminCall) async throws -> Response {
    let player = try call.player
    let body = try await cloud.gate.json(Reason.self, of: call.request, limit: ServerLimits.accountBytes)
    let ban = Ban(reason: try call.reason(body.reason), sinceMilliseconds: cloud.clock())
    try await storage.setBan(ban, of: player.container, auditing: call.storage.entry)
    call.storage.written()
    cloud.events.end(nil, of: player.container)
    for one in try await storage.sharedDevices(of: player.container, nil) {
      cloud.events.end(one.device, of: one.container)
    }
    return try Response(json: ban)
  }

  private func delete(_ call: AdminCall) async throws -> Response {
    let player = try call.player
    let deletion = try await cloud.delete(player.container) {
      try await storage.delete(player.container, now: cloud.clock(), auditing: call.storage.entry)
    }
    call.storage.written()
    let isDatabaseErased = await storage.erase()
    return try Response(json: Deleted(erased: deletion.areFilesGone && isDatabaseErased))
  }
}
#endif
