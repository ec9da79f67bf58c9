#if Cloud
import Foundation
import HTTPTypes
import Hummingbird
import KeepsakeReplication
import NIOCore

/// A player's devices, and everything that a player has: listing, exporting, deleting.
extension CloudRoutes {
  func addPlayerRoutes(to router: RouterGroup<CloudContext>) {
    router.get("devices") { request, _ in
      let identity = try await identity(of: request)
      var holders: [VersionID: Set<DeviceID>]?
      if let asked = try Self.versions(of: request) {
        holders = try await storage.devices(of: identity.container, holding: asked)
      }
      let devices = try await storage.devices(of: identity.container).map { [holders] known in
        let device = known.identity.device
        return AccountDevice(
          device: device, name: known.name ?? "", createdMilliseconds: known.createdMilliseconds,
          seenMilliseconds: known.seenMilliseconds, isThis: device == identity.device,
          has: holders?.filter { $0.value.contains(device) }.keys.sorted())
      }
      return try Response(json: DeviceList(devices: devices))
    }
    router.delete("devices/{device}") { request, context in
      let identity = try await identity(of: request)
      guard let device = context.parameters.get("device").flatMap({ DeviceID($0) }) else {
        throw APIError(.badRequest, .badRequest, "The address has to contain a device's id of 32 hexadecimal digits.")
      }
      let container = identity.container
      let isLeaving = device == identity.device
      if !isLeaving { try refuseReadOnly(identity) }
      guard let moved = try await remove(device, of: container, isLeaving: isLeaving, by: storage) else {
        throw APIError(.notFound, .notFound, "This player has no such device.")
      }
      if let seq = moved.seq { events.publish(seq, nil, of: container, from: identity.device) }
      return Response(status: .noContent)
    }
    router.get("export") { request, _ in
      let identity = try await identity(of: request)
      return try await export(identity.container)
    }
    router.delete("player") { request, _ in
      let identity = try await writingIdentity(of: request)
      try await delete(identity.container) { try await storage.delete(identity.container, now: clock()) }
      return Response(status: .noContent)
    }
  }

  /// The versions that `request` asks about, if any: VERSION,VERSION.
  private static func versions(of request: Request) throws -> [VersionID]? {
    guard let text = request.uri.queryParameters["versions"] else { return nil }
    let names = text.split(separator: ",", omittingEmptySubsequences: false)
    guard names.count <= ExchangeRules.maximumAskedVersions else {
      throw APIError(
        .badRequest, .badRequest, "One request can ask about at most \(ExchangeRules.maximumAskedVersions) versions.")
    }
    return try names.map { name in
      guard let version = VersionID(String(name)) else {
        throw APIError(
          .badRequest, .badRequest,
          "The parameter versions has to be a list of ids of 32 hexadecimal digits, separated by commas.")
      }
      return version
    }
  }

  /// Exports everything as lines of JSON, page by page, so that the server never holds all of it in memory.
  ///
  /// The first line is written only after the first page could be read. A response without its last line is incomplete.
  private func export(_ container: ContainerID) async throws -> Response {
    guard let turn = gate.exports.share(1) else { throw APIError.overBudget("exports") }
    let storage = storage
    let devices = try await storage.devices(of: container)
    let recovery = try await storage.recovery(of: container)
    let identities = try await storage.identities(of: container)
    let shared = try await storage.sharedContainers(of: container)
    var page: PlayerExport.Page? = try await storage.exported(.start, of: container)
    let first = page
    page = nil
    let body = ResponseBody { writer in
      defer { turn.end() }
      var count = 0
      func write(_ lines: [PlayerExport.Line]) async throws {
        guard !lines.isEmpty else { return }
        var buffer = ByteBuffer()
        for line in lines {
          buffer.writeBytes(try line.json())
          buffer.writeInteger(UInt8(ascii: "\n"))
          if buffer.readableBytes >= ServerLimits.responsePartBytes {
            try await writer.write(buffer)
            buffer.clear()
          }
        }
        count += lines.count
        if buffer.readableBytes > 0 { try await writer.write(buffer) }
      }
      try await write(devices.map(PlayerExport.Line.init))
      if let made = recovery.createdMilliseconds { try await write([PlayerExport.Line(recoveryCode: made)]) }
      try await write(identities.map(PlayerExport.Line.init))
      try await write(shared.map(PlayerExport.Line.init))
      var next = first
      while let page = next {
        try await write(page.lines)
        guard let place = page.next else { break }
        next = try await storage.exported(place, of: container)
      }
      try await write([.end(lines: count)])
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: [.contentType: "application/x-ndjson"], body: body)
  }
}
#endif
