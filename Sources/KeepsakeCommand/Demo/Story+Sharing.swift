#if Cloud
import FlowerGarden
import Foundation
import KeepsakeServer

// The chapter about two games of one studio, and a game of another one.
extension Story {
  private static let (team, otherTeam) = ("petals", "arcade")

  mutating func share() throws {
    report("\n13. Two games of one studio share a purse and a hero")
    let (garden, bakery, stranger) = try (
      game("garden", of: Self.team), game("bakery", of: Self.team), game("pinball", of: Self.otherTeam)
    )
    for app in ["garden", "bakery"] { try team("grant", Self.team, Studio.name, app) }
    report("  The studio's garden and bakery may both use \(Studio.name); the pinball game is another studio's.")

    try garden.send(.earnCoins(30))
    try garden.send(.unlockHero("gardener"))
    try garden.send(.syncStudio)
    guard let code = try garden.send(.studioPairingCode).code else {
      throw DemoDevice.Refused(device: garden.name, why: "no pairing code came")
    }
    try bakery.send(.joinStudio(code: code))
    var expected = StudioView(coins: 30, heroes: ["gardener"], isEntitled: true)
    let joined = try bakery.wait(for: .studio(expected))
    let failure = try bakery.ask(.spendCoins(20, on: "an oven", seconds: 20)).refused
    expected.coins -= 20
    let arrived = try [garden, bakery].map { try $0.wait(for: .studio(expected)) }.allSatisfy(\.self)
    let seen = try Self.text(garden, bakery)
    promise(
      "two games of a studio share a purse and a hero",
      seen: failure ?? "30 coins of the garden, 20 spent in the bakery; both show \(seen)",
      kept: joined && failure == nil && arrived)

    try showStranger(stranger, garden)
    try withdraw(bakery, garden, expected)
    for device in [garden, bakery, stranger] { try device.quit() }
  }

  private mutating func showStranger(_ stranger: DemoDevice, _ garden: DemoDevice) throws {
    guard let code = try garden.send(.studioPairingCode).code else {
      throw DemoDevice.Refused(device: garden.name, why: "no pairing code came")
    }
    let refusal = try stranger.ask(.joinStudio(code: code)).refused
    let nothing = StudioView(coins: 0, heroes: [], isEntitled: false)
    let isTold = try stranger.wait(for: .studio(nothing))
    promise(
      "a game of another studio sees neither, and is told", seen: refusal ?? "it joined with a code",
      kept: refusal != nil && isTold)
  }

  /// The bakery loses the right to the shared container in the middle, and gets it again.
  private mutating func withdraw(_ bakery: DemoDevice, _ garden: DemoDevice, _ before: StudioView) throws {
    try team("withdraw", Self.team, Studio.name, "bakery")
    try bakery.send(.unlockHero("baker"))
    let refusal = try bakery.ask(.syncStudio).refused
    var expected = before
    expected.heroes = ["baker", "gardener"]
    let goesOn = try bakery.readStudio().heroes == expected.heroes
    report("  The bakery may not use it any more: \(refusal ?? "it was not refused"). It unlocks a baker offline.")
    try team("grant", Self.team, Studio.name, "bakery")
    try bakery.send(.syncStudio)
    let arrived = try garden.wait(for: .studio(expected))
    promise(
      "a game that loses the right goes on, and syncs once it has it again",
      seen: arrived ? "the garden shows \(expected.heroes.joined(separator: " and "))" : "no baker within 20 s",
      kept: refusal != nil && goesOn && arrived)
  }

  /// Creates an app in a team, and a device with that game.
  private func game(_ name: String, of team: String) throws -> DemoDevice {
    let registry = try AppRegistry(data: data)
    guard let key = try registry.create(name).key else {
      throw DemoDevice.Refused(device: name, why: "the app has no key of its own")
    }
    // One team has two games.
    if name != "bakery" {
      try self.team("create", team)
      if team == Self.team { try self.team("share", team, Studio.name) }
    }
    try self.team("add", team, name)
    let device = try device(name)
    try device.send(.connect(url: server, appKey: key))
    return device
  }

  /// Runs `keepsake team`, as a studio does beside its running server.
  private func team(_ arguments: String...) throws {
    let process = try ChildProcess(
      name: "keepsake team", arguments: ["team"] + arguments + ["--data", data.path(percentEncoded: false)])
    let status = try process.finish(withinSeconds: 60)
    guard status == 0 else {
      throw DemoDevice.Refused(
        device: "keepsake team \(arguments.joined(separator: " "))", why: "it ended with the exit status \(status)")
    }
  }

  private static func text(_ devices: DemoDevice...) throws -> String {
    try devices.map { device in
      let view = try device.readStudio()
      return "\(view.coins) and \(view.heroes.joined(separator: ", "))"
    }.joined(separator: " | ")
  }
}
#endif
