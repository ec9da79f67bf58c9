#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication

/// `keepsake admin device`: a player's devices.
struct AdminDeviceCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device", abstract: "List a player's devices, clear one, or remove one.",
    subcommands: [AdminDeviceListCommand.self, AdminDeviceClearCommand.self, AdminDeviceRemoveCommand.self])
}

/// `keepsake admin device list`: lists a player's devices.
struct AdminDeviceListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List a player's devices, when each was last seen, and whether it was set back.",
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

/// `keepsake admin device clear`: removes the mark of a set-back device.
struct AdminDeviceClearCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clear", abstract: "Remove the mark that a device's store went back to an older state.",
    examples: [
      "keepsake admin device clear --url URL --key-file key PLAYER DEVICE"
    ])

  @OptionGroup var options: AdminOptions

  @Argument(help: "The player's id.")
  var player: PlayerArgument

  @Argument(help: "The device's id.")
  var device: DeviceArgument

  private struct Cleared: Encodable {
    var player: PlayerID
    var device: DeviceID
  }

  func run() async throws {
    try await CommandRun.reporting(json: options.json) {
      _ = try await options.client().send("DELETE", ["players", "\(player.id)", "devices", "\(device.id)", "set-back"])
      if options.json { return try Output.document(Cleared(player: player.id, device: device.id)) }
      Output.text("cleared \(device.id)")
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
