#if Cloud
import ArgumentParser
import FlowerGarden
import Foundation
import Keepsake

/// One device of the demo, as a process of its own: reads requests and writes replies, one per line.
struct DemoDeviceCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo-device", abstract: "One device of the demo; started by `keepsake demo`.", shouldDisplay: false)

  @Option(help: "The device's name in the story.") var name: String
  @Option(help: "The folder of its store.") var store: String

  func run() async throws {
    let garden = try FlowerGarden(store: URL(filePath: store))
    for await line in Self.requests() {
      let request = try JSONDecoder().decode(DemoRequest.self, from: Data(line.utf8))
      if case .saveWithoutPause = request { try await saveWithoutPause(garden) }
      var reply = DemoReply()
      do {
        reply = try await answer(request, garden)
      } catch {
        reply.refused = (error as? GameDataError)?.message ?? String(describing: error)
      }
      Self.send(reply)
      if case .quit = request { return }
    }
  }

  private func answer(_ request: DemoRequest, _ garden: FlowerGarden) async throws -> DemoReply {
    let game = garden.game
    var reply = DemoReply()
    switch request {
    case .connect(let url, let appKey): game.cloud.connect(.server(url, appKey: appKey), deviceName: name)
    case .pairingCode: reply.code = try await game.cloud.pairingCode()
    case .join(let code): try await game.cloud.join(code)
    case .makeRecoveryCode: reply.code = try await game.cloud.makeRecoveryCode()
    case .recover(let code): reply.code = try await game.cloud.recover(code)
    case .signIn(let token): try await game.cloud.signIn(.token(token, issuer: "login"))
    case .airplaneMode(let on): game.cloud.isEnabled = !on
    case .plant(let pot, let flower): try await garden.plant(flower, in: pot)
    case .water(let pot, let times): try await garden.water(pot, times: times)
    case .reachLevel(let level): try garden.reach(level: level)
    case .unlock(let seed): try garden.unlock(seed: seed)
    case .claimStarterGift: try garden.claimStarterGift()
    case .earn(let gems): try garden.earn(gems, for: "a quest")
    case .spend(let gems, let thing): try garden.buy(thing, for: gems)
    case .spendAsking(let gems, let thing, let seconds):
      try await garden.buy(thing, for: gems, askingBankFor: .seconds(seconds))
    case .remove(let name):
      for device in try await game.cloud.devices() where device.name == name { try await game.cloud.remove(device) }
    case .takeBack: reply.takenBack = try garden.takeBack()
    case .sync: try await game.cloud.sync()
    case .waitFor(let condition, let seconds): reply.cameTrue = try await wait(for: condition, seconds: seconds, garden)
    case .readBack: reply.view = try garden.view()
    case .earnCoins, .spendCoins, .unlockHero, .studioPairingCode, .joinStudio, .syncStudio, .readStudio:
      try await answer(request, Studio(of: game), &reply)
    case .saveWithoutPause: break
    case .quit: try game.close(within: .seconds(5))
    }
    return reply
  }

  private func answer(_ request: DemoRequest, _ studio: Studio, _ reply: inout DemoReply) async throws {
    switch request {
    case .earnCoins(let coins): try studio.earn(coins, for: "a harvest")
    case .spendCoins(let coins, let thing, let seconds):
      try await studio.buy(thing, for: coins, askingBankFor: .seconds(seconds))
    case .unlockHero(let hero): try studio.unlock(hero: hero)
    case .studioPairingCode: reply.code = try await studio.shared.cloud.pairingCode()
    case .joinStudio(let code): try await studio.shared.cloud.join(code)
    case .syncStudio: try await studio.shared.cloud.sync()
    default: reply.studio = studio.view()
    }
  }

  /// Checks every few milliseconds; returns false if the time runs out first.
  private func wait(for condition: DemoCondition, seconds: Double, _ garden: FlowerGarden) async throws -> Bool {
    let clock = ContinuousClock()
    let start = clock.now
    while start.duration(to: clock.now) < .seconds(seconds) {
      if try condition.isMet(in: garden) { return true }
      try await Task.sleep(for: .milliseconds(2))
    }
    return false
  }

  private func saveWithoutPause(_ garden: FlowerGarden) async throws {
    var journal = try garden.game.saves.load(.journal) ?? Journal()
    while Output.hasReader {
      journal.entry += 1
      try await garden.game.saves.save(journal, to: .journal)
      var reply = DemoReply()
      reply.acknowledged = journal.entry
      Self.send(reply)
    }
  }

  /// Lines from standard input, read on a thread of their own so that no task blocks on them.
  private static func requests() -> AsyncStream<String> {
    AsyncStream { lines in
      let reader = Thread {
        while let line = readLine() { lines.yield(line) }
        lines.finish()
      }
      reader.start()
    }
  }

  private static func send(_ reply: DemoReply) { Output.line(reply) }
}
#endif
