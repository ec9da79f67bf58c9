import BenchmarkKit
import Foundation
import Keepsake

/// Two devices of one player, and the cloud between them.
struct Player {
  let first: GameData
  let second: GameData
  /// What each says to the cloud goes through its own; nil where nothing may stand between.
  let meters: (first: WireMeter, second: WireMeter)?

  /// - Parameter isMetered: Whether every byte is counted, at the cost of some time.
  init(_ cloud: CloudProcess, in folder: URL, isMetered: Bool) async throws {
    first = try GameData.open("com.example.garden", at: folder.appending(path: "first"))
    second = try GameData.open("com.example.garden", at: folder.appending(path: "second"))
    meters = isMetered ? (try WireMeter(to: cloud), try WireMeter(to: cloud)) : nil
    first.cloud.connect(.server(meters?.first.url ?? cloud.url, appKey: cloud.appKey), deviceName: "first")
    let code = try await first.cloud.pairingCode()
    second.cloud.connect(.server(meters?.second.url ?? cloud.url, appKey: cloud.appKey), deviceName: "second")
    try await second.cloud.join(code)
    try await settle()
  }

  func settle() async throws {
    try await first.cloud.sync()
    try await second.cloud.sync()
  }

  func close() throws {
    try first.close()
    try second.close()
    meters?.first.stop()
    meters?.second.stop()
  }
}
