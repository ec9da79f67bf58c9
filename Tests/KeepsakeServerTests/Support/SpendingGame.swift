#if Cloud && os(Linux)
import Foundation
import Glibc
import Keepsake
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

/// A game in a separate process that earns, spends, converts and claims without a pause, until it is killed.
///
/// The process is this test program again, with an environment that makes it run one test: the one below, which is the
/// game.
struct SpendingGame: Sendable {
  static let variable = "KEEPSAKE_TEST_GAME"
  static let identifier = "com.example.money"
  static let currencies = [Currency("gems"), Currency("coins")]
  /// How long a purchase asks the bank: less than it takes to start a server again.
  private static let limit = Duration.milliseconds(500)
  /// The payments that a player can claim. Both devices do.
  private static let payments = 60

  let name: String
  private let folder: URL
  private let process: Process
  private let ended: Task<Void, Never>

  /// Where a game of that name keeps its data.
  static func data(of name: String, in folder: URL) -> URL { folder.appendingPathComponent(name) }

  /// Where it writes down what it does.
  static func notes(of name: String, in folder: URL) -> URL { folder.appendingPathComponent("notes of \(name)") }

  /// Where it writes why it ended.
  private static func failure(of name: String, in folder: URL) -> URL {
    folder.appendingPathComponent("failure of \(name)")
  }

  /// Starts a game that continues with the data in the folder.
  static func start(_ name: String, in folder: URL, with server: URL, seed: UInt64) throws -> SpendingGame {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
    process.arguments = ["--testing-library", "swift-testing", "--filter", "SpendingGameTests"]
    let words = [name, folder.path, server.absoluteString, "\(seed)", "\(getpid())"]
    process.environment = ProcessInfo.processInfo.environment.merging(
      [variable: words.joined(separator: "\n")], uniquingKeysWith: { $1 })
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    let (stream, continuation) = AsyncStream<Void>.makeStream()
    process.terminationHandler = { _ in continuation.finish() }
    try process.run()
    return SpendingGame(
      name: name, folder: folder, process: process, ended: Task { for await _ in stream {} })
  }

  /// Kills the process, whatever it is doing; returns when it has ended.
  func kill() async {
    if process.isRunning { Glibc.kill(process.processIdentifier, SIGKILL) }
    await ended.value
  }

  /// Waits until the game has written down about so many more operations.
  func makes(_ count: Int) async throws {
    // What it writes before and after a call.
    let bytesOfOperation = 400
    let before = try size()
    try await until("\(name) makes \(count) operations") {
      guard process.isRunning else {
        let reason = try? String(contentsOf: Self.failure(of: name, in: folder), encoding: .utf8)
        throw NeverHappened("\(name) has ended: \(reason ?? "it didn't say why")")
      }
      return try size() >= before + count * bytesOfOperation
    }
  }

  private func size() throws -> Int {
    let path = Self.notes(of: name, in: folder).path
    guard FileManager.default.fileExists(atPath: path) else { return 0 }
    return try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
  }

  // MARK: The game

  /// The process's side: plays until it is killed, or until nobody is there who would kill it.
  static func play(_ words: [String]) async throws {
    try #require(words.count == 5)
    let (name, folder) = (words[0], URL(fileURLWithPath: words[1]))
    let (server, seed, parent) = (URL(string: words[2]), UInt64(words[3]), Int32(words[4]))
    do {
      try await play(name, in: folder, with: #require(server), seed: #require(seed)) { getppid() == parent }
    } catch {
      try Data("\(error)".utf8).write(to: failure(of: name, in: folder))
      throw error
    }
  }

  private static func play(
    _ name: String, in folder: URL, with server: URL, seed: UInt64, while isWanted: () -> Bool
  ) async throws {
    var random = SeededGenerator(seed: seed)
    let file = notes(of: name, in: folder)
    let last = try WalletNotes.read(file).last
    let notes = try WalletNotes(at: file)
    let game = try GameData.open(identifier, at: data(of: name, in: folder))
    game.cloud.connect(.server(server, appKey: ServerProcess.appKey), deviceName: name)
    // Nobody knows whether it was made before the process was killed: some games try again, others don't.
    if let last, last.event == .planned, random.once(in: 2) {
      try await make(last.operation, asking: random.once(in: 2), in: game, notes)
    }
    while isWanted() {
      let isAsking = random.once(in: 4)
      let operation = operation(asking: isAsking, in: game, using: &random)
      try notes.add(.planned, operation)
      try await make(operation, asking: isAsking, in: game, notes)
    }
  }

  private static func operation(
    asking isAsking: Bool, in game: GameData, using random: inout SeededGenerator
  ) -> WalletOperation {
    let currency = random.once(in: 4) ? currencies[1] : currencies[0]
    let balance = game.wallet[currency]
    var kind = WalletOperation.Kind.spend
    var amount: Int
    var goods = random.once(in: 2) ? [] : [random.once(in: 2) ? "sword" : "hat"]
    if isAsking {
      // Mostly more than a device's share.
      amount = Int.random(in: (balance.total / 4)...max(balance.total * 3 / 4, 1), using: &random)
    } else {
      switch Int.random(in: 0..<8, using: &random) {
      case 0..<3:
        (kind, goods) = (.earn, [])
        amount = Int.random(in: 1...30, using: &random)
      case 3..<5: amount = Int.random(in: 1...max(1, min(20, balance.spendable)), using: &random)
      case 5:
        let other = currencies.first { $0 != currency }?.name ?? ""
        (kind, goods) = (.convert(to: other, received: Int64.random(in: 1...9, using: &random)), [])
        amount = Int.random(in: 1...9, using: &random)
      default:
        // The same payment has the same amount wherever it is claimed.
        let number = Int.random(in: 0..<payments, using: &random)
        return WalletOperation(
          id: OperationID(using: &random), kind: .claim(key: "gift \(number)"), currency: currencies[0].name,
          amount: Int64(number + 1), reason: "a gift", goods: ["gift \(number)"])
      }
    }
    return WalletOperation(
      id: OperationID(using: &random), kind: kind, currency: currency.name, amount: Int64(max(amount, 1)),
      reason: "a round", goods: goods)
  }

  /// Makes an operation that was planned, and writes down what came of it.
  private static func make(
    _ operation: WalletOperation, asking isAsking: Bool, in game: GameData, _ notes: WalletNotes
  ) async throws {
    do {
      try await call(operation, asking: isAsking, on: game.wallet)
      try notes.add(.returned, operation)
    } catch let error as GameDataError {
      switch error.code {
      case .insufficient, .unreachable, .timedOut: try notes.add(.refused, operation)
      default: throw error
      }
    }
    for currency in currencies {
      let balance = game.wallet[currency]
      guard balance.spendable >= 0, balance.total >= 0 else { throw NeverHappened("less than nothing: \(balance)") }
    }
  }

  private static func call(_ operation: WalletOperation, asking isAsking: Bool, on wallet: WalletStore) async throws {
    let (amount, currency) = (Int(operation.amount), Currency(operation.currency))
    let (id, reason, goods) = (operation.id, operation.reason, operation.goods.map { Goods($0) })
    switch operation.kind {
    case .earn: try wallet.earn(amount, currency, for: reason, id: id)
    case .spend where isAsking:
      try await wallet.spend(amount, currency, for: reason, id: id, goods: goods, askingBankFor: limit)
    case .spend: try wallet.spend(amount, currency, for: reason, id: id, goods: goods)
    case .convert(let other, let received):
      try wallet.convert(amount, currency, to: Int(received), Currency(other), for: reason, id: id)
    case .claim(let key): try wallet.claim(amount, currency, key: key, for: reason, goods: goods)
    case .giveBack: throw NeverHappened("no game gives rights back")
    }
  }
}

struct SpendingGameTests {
  @Test(
    "plays the game of another test in a separate process",
    .partOfAnotherTest(where: ProcessInfo.processInfo.environment[SpendingGame.variable] != nil))
  func play() async throws {
    let words = try #require(ProcessInfo.processInfo.environment[SpendingGame.variable])
    try await SpendingGame.play(words.split(separator: "\n").map(String.init))
  }
}
#endif
