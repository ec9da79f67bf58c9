import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// An account adopts a guest that has a cloud, and maybe other devices: the guest's cloud continues without what was
/// adopted.
@Suite struct ConnectedGuestTests: WithAccounts {
  let place: AccountsFolder
  /// The guest's cloud.
  let theirs = MemoryCloud(id: ContainerID(high: 8, low: 8))

  init() throws { place = try AccountsFolder() }

  private var guestURL: URL {
    get throws { try AccountLocation(.guest, in: folder.url.appendingPathComponent("device")).url }
  }

  private func forgetGuest() throws {
    try GameData.forget(.guest, of: "com.example.space", in: folder.url.appendingPathComponent("device"))
  }

  /// Opens the guest, connected to its own cloud, and syncs before and after the body.
  private func withConnectedGuest(in place: String = "device", _ body: (GameData) throws -> Void = { _ in })
    async throws
  {
    let guest = try open(.guest, in: place)
    defer { end(guest) }
    guest.cloud.connect(theirs.address)
    try await guest.cloud.sync()
    try body(guest)
    try await guest.cloud.sync()
  }

  @Test("a guest isn't emptied before its bank knows that the money moved, or another device could spend it again")
  func emptiesOnceTold() async throws {
    try await withConnectedGuest { try $0.wallet.earn(100, .gems, for: "a quest") }
    let ada = try open(Self.ada)
    defer { end(ada) }
    var left = Adoption.Left()
    left.unreported = [.gems]
    for round in 1...2 {
      let adoption = try ada.adopt(.guest, emptying: true)
      #expect(adoption.money == (round == 1 ? [.gems: 100] : [:]), "round \(round)")
      #expect(adoption.left == left && !adoption.isEmptied, "round \(round)")
    }
    try await withConnectedGuest()
    #expect(try ada.adopt(.guest, emptying: true).isEmptied)
    try await withConnectedGuest(in: "tablet")
    #expect(
      try with(.guest, in: "tablet") { $0.wallet[.gems].total } == 0
        && Bank(theirs.container.bank()).balance("gems") == 0)
    #expect(ada.wallet[.gems].total == 100)
  }

  @Test("changes that a guest has received but not yet delivered to the game are adopted, too")
  func keptBack() async throws {
    try await withConnectedGuest()
    try await withConnectedGuest(in: "tablet") { (there: GameData) throws in
      try there.saves.capture(World(level: 4), to: .main).wait()
      try there.progress.record(9, for: .level).wait()
    }
    let guest = try open(.guest)
    guest.cloud.delivery = .manually
    guest.cloud.connect(theirs.address)
    try await guest.cloud.sync()
    #expect(try guest.cloud.status.hasArrivals && guest.saves.load(.main) == nil)
    try guest.close()
    let ada = try open(Self.ada)
    defer { end(ada) }
    let adoption = try ada.adopt(.guest, emptying: true)
    #expect(adoption.saves == ["main"] && adoption.left.isEmpty && adoption.isEmptied)
    #expect(try ada.saves.load(.main)?.level == 4 && ada.progress[.level] == 9)
  }

  @Test("a guest with a staged version whose content hasn't arrived isn't emptied")
  func incoming() async throws {
    try await withConnectedGuest { try $0.saves.capture(World(level: 4), to: .main).wait() }
    let store = try Store.open(at: guestURL, history: .everything)
    try store.write { transaction in
      let record = VersionRecord(
        id: VersionID(high: 9, low: 9), slot: "cave", covers: [], contents: [ContentHash(of: Data("elsewhere".utf8))],
        length: 9,
        savedAtMilliseconds: 5, writer: WriterID(3), provisional: false)
      try transaction.stage([CloudChange(seq: 4, item: .version(record))])
    }
    try store.close()
    var left = Adoption.Left()
    left.hasIncoming = true
    try with(Self.ada) { (ada: GameData) throws in
      let adoption = try ada.adopt(.guest, emptying: true)
      #expect(adoption.left == left && !adoption.isEmptied && adoption.saves == ["main"])
    }
  }

  @Test("a guest can't be forgotten while its money is on the way to an account, even if its bank knows of it")
  func forgetsNoParcel() async throws {
    try await withConnectedGuest { try $0.wallet.earn(100, .gems, for: "a quest") }
    try with(Self.ada) { (ada: GameData) throws in
      // The adoption is interrupted here.
      let source = try Store.open(at: guestURL, history: .everything)
      try Adopter(from: source, into: ada.core, for: try #require(ada.options.accounts)).pack()
      try source.close()
    }
    try await withConnectedGuest()
    var unsent = UnsentData()
    unsent.currencies = ["gems"]
    #expect(gameErrorCode { try forgetGuest() } == .wouldBeLost(unsent))
    try with(Self.ada) { (ada: GameData) throws in
      #expect(try ada.adopt(.guest).money == [.gems: 100])
      try forgetGuest()
      #expect(ada.wallet[.gems].total == 100)
    }
  }
}
