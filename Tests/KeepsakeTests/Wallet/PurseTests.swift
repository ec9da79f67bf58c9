import Keepsake
import Testing

/// Money of one run is in the saved game and nowhere else.
@Suite struct PurseTests {
  @Archivable struct Run: Equatable {
    var level = 1
    var purse = Purse()
  }

  @Archivable struct Shared {
    @Merge(combining: Purse.joined) var purse = Purse()
  }

  @Test("gold is earned, spent up to the balance, and gone when the game ends")
  func run() throws {
    var purse = Purse()
    try purse.earn(20, .gold)
    try purse.spend(15, .gold)
    #expect(purse[.gold] == 5 && purse[.gems] == 0)
    #expect(gameErrorCode { try purse.spend(6, .gold) } == .insufficient(5, of: 5))
    #expect(purse[.gold] == 5)
    try purse.earn(1, .wood)
    try purse.spend(1, .wood)
    #expect(purse.currencies == [.gold])
    #expect(purse.endGame() == [.gold: 5])
    #expect(purse == Purse() && purse.endGame().isEmpty)
  }

  @Test("amounts that aren't positive are refused and change nothing", arguments: [0, -1, Int.min])
  func mistakes(amount: Int) throws {
    var purse = Purse()
    try purse.earn(5, .gold)
    #expect(gameErrorCode { try purse.earn(amount, .gold) } == .misuse)
    #expect(gameErrorCode { try purse.spend(amount, .gold) } == .misuse)
    #expect(purse[.gold] == 5)
  }

  @Test("a purse refuses more than its largest amount, before sums overflow")
  func full() throws {
    var purse = Purse()
    try purse.earn(Purse.maximumAmount, .gold)
    #expect(gameErrorCode { try purse.earn(1, .gold) } == .tooLarge)
    #expect(gameErrorCode { try purse.earn(.max, .gold) } == .tooLarge)
    try purse.spend(Purse.maximumAmount, .gold)
    #expect(purse == Purse())
  }

  @Test("two devices' changes of a purse are joined, and no amount becomes negative or exceeds the limit")
  func joined() throws {
    func purse(_ amounts: [Currency: Int]) throws -> Purse {
      var purse = Purse()
      for (currency, amount) in amounts { try purse.earn(amount, currency) }
      return purse
    }
    let before = try purse([.gold: 20, .wood: 5, .iron: 8])
    let mine = try purse([.gold: 25, .iron: 2])
    let theirs = try purse([.gold: 15, .wood: 9, .iron: 1, .gems: 3])
    let joined = try purse([.gold: 20, .wood: 4, .gems: 3])
    #expect(Purse.joined(mine, theirs, before) == joined)
    #expect(Purse.joined(theirs, mine, before) == joined)
    #expect(Purse.joined(mine, theirs, nil) == (try purse([.gold: 25, .wood: 9, .iron: 2, .gems: 3])))
    let full = try purse([.gold: Purse.maximumAmount])
    #expect(Purse.joined(full, full, Purse()) == full)
    #expect(Purse.joined(before, before, before) == before)
  }

  @Test("a purse can be joined by the merge rule of a property")
  func joinedByRule() throws {
    var before = Shared()
    try before.purse.earn(20, .gold)
    var (mine, theirs) = (before, before)
    try mine.purse.spend(15, .gold)
    try theirs.purse.earn(7, .gold)
    mine.mergeFields(from: theirs, ancestor: before)
    #expect(mine.purse[.gold] == 12)
  }

  @Test("restoring an older save restores its gold, but not the gems of the wallet")
  func olderSave() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    let slot = Slot<Run>("run")
    var run = Run()
    try run.purse.earn(20, .gold)
    try game.wallet.earn(3, .gems, for: "start")
    let before = try game.saves.capture(run, to: slot).wait()
    try run.purse.spend(20, .gold)
    try game.wallet.spend(3, .gems, for: "potion")
    try game.saves.capture(run, to: slot).wait()
    #expect(try game.saves.load(slot)?.purse == Purse())
    try game.saves.restore(before.id, in: slot)
    #expect(try game.saves.load(slot)?.purse[.gold] == 20)
    #expect(game.wallet[.gems].total == 0)
  }

  @Test("a purse with an impossible amount is refused when it is decoded", arguments: [0, -5, Int.max])
  func forged(amount: Int) throws {
    let bytes = try Archive.encode(Forged(amounts: ["gold": amount]))
    #expect { try Archive.decode(Purse.self, from: bytes) } throws: { ($0 as? ArchiveError)?.code == .mismatch }
    let honest = try Archive.encode(Forged(amounts: ["gold": 7]))
    #expect(try Archive.decode(Purse.self, from: honest)[.gold] == 7)
  }

  struct Forged: Archivable {
    var amounts: [String: Int]

    static var archiveName: String { Purse.archiveName }

    init(amounts: [String: Int]) { self.amounts = amounts }
    init(from reader: inout ArchiveReader) throws { amounts = try reader.decode([String: Int].self, forKey: "amounts") }
    func encode(to writer: inout ArchiveWriter) throws { try writer.encode(amounts, forKey: "amounts") }
  }
}

extension Currency {
  fileprivate static let gold = Currency("gold")
  fileprivate static let wood = Currency("wood")
  fileprivate static let iron = Currency("iron")
}
