#if Cloud
import Foundation
import Keepsake
import KeepsakeReplication
import KeepsakeServer
import TestSupport
import Testing

/// Games of one studio and of another one, through the public API and a real server.
@Suite("Games that share a container", .hangLimit) struct SharedGamesTests {
  private static let coins = Currency("coins")
  private static let heroes = ProgressKey<Set<String>>("heroes", rule: .union)

  private func shared(_ game: GameData) throws -> GameData { try game.shared(StudioServer.container) }

  private func code(_ call: () async throws -> Void) async throws -> GameDataError.Code? {
    do {
      try await call()
      return nil
    } catch let error as GameDataError {
      return error.code
    }
  }

  @Test("two games of one team share a purse and a hero, and nothing of it is in either game's own data")
  func sharePurse() async throws {
    try await StudioServer.with { studio in
      for app in ["garden", "bakery"] { try studio.grant(app) }
      let (garden, bakery) = (try studio.open("garden"), try studio.open("bakery"))
      let (mine, theirs) = (try shared(garden), try shared(bakery))
      try mine.wallet.earn(30, Self.coins, for: "a harvest")
      try mine.progress.insert("gardener", into: Self.heroes)
      try await mine.cloud.sync()
      try await theirs.cloud.join(try await mine.cloud.pairingCode())
      try await theirs.cloud.sync()
      #expect(theirs.wallet[Self.coins].total == 30 && theirs.progress[Self.heroes] == ["gardener"])
      try await theirs.wallet.spend(20, Self.coins, for: "an oven", askingBankFor: Patience.limit)
      try await theirs.cloud.sync()
      try await mine.cloud.sync()
      #expect(mine.wallet[Self.coins].total == 10)
      for game in [garden, bakery] {
        #expect(game.wallet[Self.coins].total == 0 && game.progress[Self.heroes].isEmpty)
        try await game.cloud.sync()
      }
      #expect(try await mine.cloud.player() == theirs.cloud.player())
      #expect(try await garden.cloud.player() != bakery.cloud.player())
      for game in [garden, bakery] { try game.close(within: Patience.limit) }
    }
  }

  @Test("a code of a game's own data opens no shared container, nor the reverse, and each works where it belongs")
  func codesStayApart() async throws {
    try await StudioServer.with { studio in
      for app in ["garden", "bakery"] { try studio.grant(app) }
      let (garden, bakery) = (try studio.open("garden"), try studio.open("bakery"))
      let tablet = try studio.open("garden", on: "tablet")
      let own = try await garden.cloud.pairingCode()
      let common = try await shared(garden).cloud.pairingCode()
      #expect(try await code { try await shared(bakery).cloud.join(own) } == .refused)
      #expect(try await code { try await tablet.cloud.join(common) } == .refused)
      try await shared(bakery).cloud.join(common)
      try await tablet.cloud.join(own)
      #expect(try await tablet.cloud.player() == garden.cloud.player())
      for game in [garden, bakery, tablet] { try game.close(within: Patience.limit) }
    }
  }

  @Test("a game of another team, or one that isn't entitled, sees nothing, as with a name that doesn't exist")
  func strangers() async throws {
    try await StudioServer.with { studio in
      try studio.grant("garden")
      let garden = try studio.open("garden")
      let mine = try shared(garden)
      try mine.wallet.earn(30, Self.coins, for: "a harvest")
      try mine.progress.insert("gardener", into: Self.heroes)
      try await mine.cloud.sync()
      for app in ["pinball", "bakery"] {
        let game = try studio.open(app)
        for name in [StudioServer.container, "no.such.container"] {
          let shared = try game.shared(name)
          #expect(try await code { try await shared.cloud.sync() } == .notEntitled)
          let pairing = try await mine.cloud.pairingCode()
          #expect(try await code { try await shared.cloud.join(pairing) } == .notEntitled)
          try await until { shared.cloud.availability == .unavailable(.notEntitled) }
          #expect(shared.wallet[Self.coins].total == 0 && shared.progress[Self.heroes].isEmpty)
        }
        // The game's own data is as ever.
        try await game.cloud.sync()
        try game.close(within: Patience.limit)
      }
      try garden.close(within: Patience.limit)
    }
  }

  @Test("a right that is withdrawn in the middle ends the sync and nothing else; given again, everything is sent")
  func withdrawn() async throws {
    try await StudioServer.with { studio in
      for app in ["garden", "bakery"] { try studio.grant(app) }
      let (garden, bakery) = (try studio.open("garden"), try studio.open("bakery"))
      let (mine, theirs) = (try shared(garden), try shared(bakery))
      try mine.wallet.earn(30, Self.coins, for: "a harvest")
      try await mine.cloud.sync()
      try await theirs.cloud.join(try await mine.cloud.pairingCode())
      try await theirs.cloud.sync()

      try studio.withdraw("bakery")
      try theirs.progress.insert("baker", into: Self.heroes)
      try theirs.wallet.earn(5, Self.coins, for: "bread")
      #expect(try await code { try await theirs.cloud.sync() } == .notEntitled)
      #expect(theirs.cloud.availability == .unavailable(.notEntitled))
      #expect(theirs.progress[Self.heroes] == ["baker"] && theirs.wallet[Self.coins].total == 35)
      try await bakery.cloud.sync()
      try await mine.cloud.sync()
      #expect(mine.progress[Self.heroes].isEmpty && mine.wallet[Self.coins].total == 30)

      try studio.grant("bakery")
      try await theirs.cloud.sync()
      #expect(theirs.cloud.availability == .available)
      try await mine.cloud.sync()
      #expect(mine.progress[Self.heroes] == ["baker"] && mine.wallet[Self.coins].total == 35)
      for game in [garden, bakery] { try game.close(within: Patience.limit) }
    }
  }

  @Test("a game that may only read sees the hero, writes nothing, and sends what it kept once it may write")
  func readOnly() async throws {
    try await StudioServer.with { studio in
      try studio.grant("garden")
      try studio.grant("bakery", .readOnly)
      let (garden, bakery) = (try studio.open("garden"), try studio.open("bakery"))
      let (mine, theirs) = (try shared(garden), try shared(bakery))
      try mine.progress.insert("gardener", into: Self.heroes)
      try mine.wallet.earn(30, Self.coins, for: "a harvest")
      try await mine.cloud.sync()
      try await theirs.cloud.join(try await mine.cloud.pairingCode())
      try await theirs.cloud.sync()
      #expect(theirs.cloud.status.isReadOnly && theirs.progress[Self.heroes] == ["gardener"])
      #expect(theirs.wallet[Self.coins].total == 0)
      #expect(try await code { try theirs.wallet.earn(5, Self.coins, for: "bread") } == .readOnly)
      #expect(try await code { _ = try await theirs.cloud.makeRecoveryCode() } == .readOnly)
      try theirs.progress.insert("baker", into: Self.heroes)
      #expect(try await code { try await theirs.cloud.sync() } == .refused)
      try await mine.cloud.sync()
      #expect(mine.progress[Self.heroes] == ["gardener"])

      try studio.grant("bakery")
      try await theirs.cloud.sync()
      #expect(!theirs.cloud.status.isReadOnly)
      try await mine.cloud.sync()
      #expect(mine.progress[Self.heroes] == ["baker", "gardener"])
      for game in [garden, bakery] { try game.close(within: Patience.limit) }
    }
  }

  @Test("a device that joins the game's player brings its shared data along, also after a restart")
  func joiningPlayer() async throws {
    try await StudioServer.with { studio in
      try studio.grant("garden")
      let phone = try studio.open("garden")
      let mine = try shared(phone)
      try mine.wallet.earn(30, Self.coins, for: "a harvest")
      try await mine.cloud.sync()
      var tablet = try studio.open("garden", on: "tablet")
      var theirs = try shared(tablet)
      try theirs.wallet.earn(7, Self.coins, for: "a harvest")
      try theirs.progress.insert("gardener", into: Self.heroes)
      try await theirs.cloud.sync()
      #expect(try await theirs.cloud.player() != mine.cloud.player())

      try await tablet.cloud.join(try await phone.cloud.pairingCode())
      #expect(try await theirs.cloud.player() == mine.cloud.player())
      try await theirs.cloud.sync()
      try tablet.close(within: Patience.limit)
      tablet = try studio.open("garden", on: "tablet")
      theirs = try shared(tablet)
      try await until("the coins of both to be there") {
        theirs.wallet[Self.coins].total == 37 && mine.wallet[Self.coins].total == 37
      }
      try await mine.cloud.sync()
      #expect(mine.progress[Self.heroes] == ["gardener"])
      for game in [phone, tablet] { try game.close(within: Patience.limit) }
    }
  }
}
#endif
