import BenchmarkKit
import Foundation
import Keepsake

/// Two devices of one player, and the cloud between them.
struct Player {
  let first: GameData
  let second: GameData
  /// What each says to the cloud goes through its own; nil where nothing may stand between.
  let meters: (first: WireMeter, second: WireMeter)?

  /// - Parameters:
  ///   - other: Another server of the same cloud, at which the second device is; nil for the same one.
  ///   - isMetered: Whether every byte is counted, at the cost of some time.
  init(_ cloud: CloudProcess, _ other: CloudProcess? = nil, in folder: URL, isMetered: Bool) async throws {
    let other = other ?? cloud
    first = try GameData.open("com.example.garden", at: folder.appending(path: "first"))
    second = try GameData.open("com.example.garden", at: folder.appending(path: "second"))
    meters = isMetered ? (try WireMeter(to: cloud), try WireMeter(to: other)) : nil
    first.cloud.connect(.server(meters?.first.url ?? cloud.url, appKey: cloud.appKey), deviceName: "first")
    let code = try await first.cloud.pairingCode()
    second.cloud.connect(.server(meters?.second.url ?? other.url, appKey: other.appKey), deviceName: "second")
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
