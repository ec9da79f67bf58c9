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

  /// The account's.
  let ours = MemoryCloud()

  init() throws { place = try AccountsFolder() }

  var environment: GameEnvironment { environment(leaving: theirs) }

  private func money(in cloud: MemoryCloud) -> Int64 { Bank(cloud.container.bank()).balance("gems") }

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

  @Test("a guest's money comes from its bank, once, even if the guest is restored and adopted again")
  func restoredGuest() async throws {
    try await withConnectedGuest { try $0.wallet.earn(100, .gems, for: "a quest") }
    let copy = folder.url.appendingPathComponent("copy")
    try FileManager.default.copyItem(at: guestURL, to: copy)
    let ada = try open(Self.ada)
    defer { end(ada) }
    ada.cloud.connect(ours.address)
    for round in 1...3 {
      let adoption = try ada.adopt(.guest, emptying: true)
      #expect(adoption.pendingMoney == [.gems: 100] && adoption.money.isEmpty, "round \(round)")
      #expect(adoption.left.isEmpty && adoption.isEmptied, "round \(round)")
      try await until { ada.wallet[.gems] == Balance(total: 100, spendable: 100, pending: 0) }
      try await ada.cloud.sync()
      #expect(money(in: ours) == 100 && money(in: theirs) == 0, "round \(round)")
      try FileManager.default.copyItem(at: copy, to: guestURL)
    }
  }

  @Test("money at a bank for which there are no credentials any more is reported once, and stays pending")
  func lostCredentials() async throws {
    try await withConnectedGuest { try $0.wallet.earn(100, .gems, for: "a quest") }
    theirs.isCut = true
    var ada = try open(Self.ada)
    #expect(try ada.adopt(.guest, emptying: true).isEmptied)
    try ada.close()
    ada = try GameData.open(
      "com.example.space", account: Self.ada, in: folder.url.appendingPathComponent("device"),
      environment: clock.environment)
    defer { end(ada) }
    ada.cloud.connect(ours.address)
    for _ in 1...2 { try await ada.cloud.sync() }
    try await until { ada.incidents.contains { $0.kind == .moneyOutOfReach } }
    #expect(ada.incidents.map(\.kind) == [.moneyOutOfReach])
    #expect(ada.incidents.first?.message.contains("100 gems") == true)
    #expect(ada.wallet[.gems] == Balance(total: 0, spendable: 0, pending: 100))
  }

  @Test("while the guest's bank can't be reached, its money is pending and the game goes on")
  func outOfReach() async throws {
    try await withConnectedGuest { (guest: GameData) throws in
      try guest.wallet.earn(100, .gems, for: "a quest")
      try guest.wallet.claim(30, .gems, key: "starter", for: "welcome")
    }
    theirs.isCut = true
    let ada = try open(Self.ada)
    defer { end(ada) }
    #expect(try ada.adopt(.guest, emptying: true).isEmptied)
    #expect(ada.wallet[.gems] == Balance(total: 0, spendable: 0, pending: 130))
    var unsent = UnsentData()
    unsent.currencies = ["gems"]
    #expect(try ada.core.store.read { try UnsentData($0, hasRecords: false) }.currencies == unsent.currencies)
    ada.cloud.connect(ours.address)
    try ada.wallet.earn(5, .gems, for: "a round")
    try ada.wallet.claim(30, .gems, key: "starter", for: "welcome")
    try await ada.cloud.sync()
    #expect(ada.wallet[.gems] == Balance(total: 35, spendable: 35, pending: 130) && money(in: ours) == 35)
    theirs.isCut = false
    ada.core.cloud.settleFormerWallets()
    // Both banks have paid the gift, which counts once.
    try await until { ada.wallet[.gems] == Balance(total: 135, spendable: 135, pending: 0) }
    #expect(money(in: ours) == 135 && money(in: theirs) == 0)
  }

  @Test("money stays with a guest whose bank can't be asked from this device, and the guest isn't emptied")
  func withoutCredentials() async throws {
    let stranger = MemoryCloud(id: ContainerID(high: 9, low: 9))
    let guest = try open(.guest)
    guest.cloud.connect(stranger.address)
    try guest.wallet.earn(100, .gems, for: "a quest")
    try await guest.cloud.sync()
    try guest.close()
    try with(Self.ada) { (ada: GameData) throws in
      let adoption = try ada.adopt(.guest, emptying: true)
      #expect(adoption.pendingMoney.isEmpty && adoption.money.isEmpty && !adoption.isEmptied)
      #expect(adoption.left.money == [.gems: 100])
    }
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
      #expect(try ada.adopt(.guest).pendingMoney == [.gems: 100])
      try forgetGuest()
      #expect(ada.wallet[.gems].pending == 100)
    }
  }
}
