#if Cloud
import Foundation
import HTTPTypes
import Hummingbird
import KeepsakeReplication
import NIOCore

/// Everything of a player as one tar archive: what `GET /v1/export` has, with the bytes of all contents.
///
///     about.json       what this is, and when it was made
///     lines/000001     lines of JSON, as of `GET /v1/export`, page by page
///     contents/HASH    a content, decoded: what a version names under `contents`
///     end.json         the last file: how many lines and contents there are, and which contents couldn't be read
extension AdminRoutes {
  private struct About: Encodable {
    var keepsake = "export of a player"
    var format = 1
    var player: PlayerID
    var madeAtMilliseconds: Int64
    var devices: [PlayerExport.Line.Device]
    var ban: Ban?
  }
  private struct End: Encodable {
    var lines = 0
    var contents = 0
    var unreadable: [ContentHash] = []
  }

  func export(_ call: AdminCall) async throws -> Response {
    let player = try call.player
    let (container, storage, now) = (player.container, self.storage, cloud.clock())
    guard let turn = turns.share(1) else { throw APIError.overBudget("exports") }
    let about = About(
      player: player.player, madeAtMilliseconds: now,
      devices: try await storage.devices(of: container).compactMap { PlayerExport.Line($0).device },
      ban: storage.ban(of: container))
    let decoding = try await decoding(of: container)
    // Read before the response begins, so that a failure is one.
    var first: PlayerExport.Page = try await storage.exported(.start, of: container)
    let made = try await storage.recovery(of: container).createdMilliseconds
    let ways = try await storage.identities(of: container)
    let shared = try await storage.sharedContainers(of: container)
    // As `GET /v1/export` has them; devices are in about.json.
    let code = made.map { [PlayerExport.Line(recoveryCode: $0)] } ?? []
    first.lines = code + ways.map(PlayerExport.Line.init) + shared.map(PlayerExport.Line.init) + first.lines
    let body = ResponseBody { [first] writer in
      defer { turn.end() }
      func write(_ path: String, _ data: Data) async throws {
        let entry = TarEntry(path: path, size: Int64(data.count), modified: now / 1_000)
        try await Self.write(entry.header, to: &writer)
        try await Self.write(data, to: &writer)
        try await Self.write(Data(count: entry.padding), to: &writer)
      }
      try await write("about.json", try Response.json(about))
      var end = End()
      var (page, number): (PlayerExport.Page?, Int) = (first, 0)
      while let current = page {
        if !current.lines.isEmpty {
          number += 1
          let name = String(repeating: "0", count: max(0, 6 - "\(number)".count)) + "\(number)"
          try await write("lines/\(name)", try current.lines.reduce(into: Data()) { $0 += try $1.json() + [0x0A] })
          end.lines += current.lines.count
        }
        for hash in current.lines.compactMap({ $0.content?.hash }) {
          do {
            try await write("contents/\(hash)", try await plain(hash, of: container, decoding))
            end.contents += 1
          } catch let error as APIError where error.code == .contentMissing {
            end.unreadable.append(hash)
          }
        }
        page = nil
        if let next = current.next { page = try await storage.exported(next, of: container) }
      }
      try await write(PlayerArchive.last, try Response.json(end))
      try await Self.write(TarEntry.end, to: &writer)
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: [.contentType: "application/x-tar"], body: body)
  }
}
#endif
