#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication

/// `keepsake admin device`: a player's devices.
struct AdminDeviceCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device", abstract: "List a player's devices, or remove one.",
    subcommands: [AdminDeviceListCommand.self, AdminDeviceRemoveCommand.self])
}

/// `keepsake admin device list`: lists a player's devices.
struct AdminDeviceListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List a player's devices, and when each was last seen.",
    examples: [
      "keepsake admin device list --url URL --key-file key PLAYER"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  private struct Devices: Decodable {
    var devices: [AdminPlayerView.Device]
  }
  private struct Listed: Encodable {
    var player: PlayerID
    var devices: [AdminPlayerView.Device]
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      let client = try options.client()
      let answer = try await client.send("GET", ["players", "\(player.id)", "devices"])
      let devices = try client.decode(Devices.self, answer).devices
      if options.json { return try Output.document(Listed(player: player.id, devices: devices.map(\.dated))) }
      Output.text(AdminPlayerView.table(devices))
    }
  }
}

/// `keepsake admin device remove`: removes a device.
struct AdminDeviceRemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove one of a player's devices: it is refused from now on.",
    examples: [
      "keepsake admin device remove --url URL --key-file key PLAYER DEVICE"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  @Argument(help: "The device's id.")
  var device: DeviceArgument

  private struct Removed: Encodable {
    var player: PlayerID
    var device: DeviceID
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      _ = try await options.client().send("DELETE", ["players", "\(player.id)", "devices", "\(device.id)"])
      if options.json { return try Output.document(Removed(player: player.id, device: device.id)) }
      Output.text("removed \(device.id)")
    }
  }
}
#endif
