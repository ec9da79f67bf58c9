#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// How a server finds out that an older copy of its database was put back.
@Suite("The database and its witness") struct DatabaseWitnessTests {
  private static let start: Int64 = 1_800_000_000_000
  private static let player = ContainerID(high: 3, low: 4)

  private struct Recorder: LogHandler {
    let lines: Shared<[String]>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.warning

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.value += ["\(event.level) \(event.message)"] }
  }

  /// A data folder whose database is opened and closed, with a clock that the test sets.
  private struct Lab {
    let now = Shared(DatabaseWitnessTests.start)
    /// What the operator is told.
    let log = Shared<[String]>([])
    let holder: TemporaryFolder

    init() throws {
      holder = try TemporaryFolder()
      try FileManager.default.createDirectory(
        at: holder.url.appendingPathComponent("contents"), withIntermediateDirectories: true)
    }

    var database: URL { holder.url.appendingPathComponent("cloud.sqlite") }
    var witness: URL { holder.url.appendingPathComponent("witness") }

    func open() throws -> SQLiteCloudStorage {
      let now = now
      let logger = Logger(label: "keepsake.test") { [log] _ in Recorder(lines: log) }
      return try SQLiteCloudStorage(
        database: database, contents: holder.url.appendingPathComponent("contents"), witness: witness,
        clock: { now.value }, logger: logger)
    }

    /// Opens and closes the database, and returns the epoch of all banks.
    @discardableResult
    func epoch() async throws -> UInt64 {
      let storage = try open()
      let epoch = storage.bankEpoch
      try await storage.close()
      return epoch
    }

    /// What the database says.
    func generation() throws -> UInt64 {
      try DatabaseQueue(path: database.path).read { try CloudNumber.generation.value(in: $0) }
    }

    func written() throws -> String { try String(contentsOf: witness, encoding: .utf8) }

    func write(_ text: String) throws { try Data(text.utf8).write(to: witness) }

    func commit(in storage: SQLiteCloudStorage) async throws {
      try await storage.decide(on: DatabaseWitnessTests.player) { container in
        var position = container.position()
        position.seq += 1
        container.advance(to: position)
      }
    }
  }

  @Test("the generation grows at each start, and the file has it, readable by its owner only")
  func starts() async throws {
    let lab = try Lab()
    for generation in 1...3 {
      #expect(try await lab.epoch() == 0)
      #expect(try lab.generation() == generation)
      #expect(try lab.written() == "\(generation)\n")
    }
    let mode = try FileManager.default.attributesOfItem(atPath: lab.witness.path)[.posixPermissions] as? NSNumber
    #expect(mode?.intValue == 0o600)
  }

  @Test("while something is committed, the generation grows once a minute, and once more when the database is closed")
  func commits() async throws {
    let lab = try Lab()
    let storage = try lab.open()
    for (seconds, generation) in [(0, 1), (59, 1), (60, 2), (100, 2), (121, 3), (40, 4)] {
      lab.now.value = Self.start + Int64(seconds) * 1_000
      try await lab.commit(in: storage)
      // The file is written after the commit, before the next one.
      try await until("the generation \(generation)") { try lab.written() == "\(generation)\n" }
    }
    try await lab.commit(in: storage)
    try await storage.close()
    #expect(try lab.generation() == 5)
    #expect(try lab.written() == "5\n")
    let idle = try lab.open()
    try await idle.close()
    #expect(try lab.written() == "6\n")
  }

  @Test("a copy of the database that is put back is found at the start, and begins one new epoch, by the clock")
  func olderDatabase() async throws {
    let lab = try Lab()
    try await lab.epoch()
    let copy = lab.holder.url.appendingPathComponent("copy")
    try FileManager.default.copyItem(at: lab.database, to: copy)
    try await lab.epoch()
    try FileManager.default.removeItem(at: lab.database)
    try FileManager.default.copyItem(at: copy, to: lab.database)
    let epoch = UInt64(Self.start / 1_000)
    #expect(lab.log.value.isEmpty)
    #expect(try await lab.epoch() == epoch)
    #expect(try await lab.epoch() == epoch)
    let warning = try #require(lab.log.value.first)
    #expect(lab.log.value.count == 1 && warning.hasPrefix("warning ") && warning.contains("older than its folder"))
    #expect(warning.contains("`keepsake bank status`"))
    // Once more, at a time when the clock is wrong: no epoch comes twice.
    lab.now.value = 5_000
    try lab.write("1000\n")
    #expect(try await lab.epoch() == epoch + 1)
    #expect(try lab.written() == "1001\n")
  }

  @Test("a database that is gone, while its witness is there, begins a new epoch")
  func newDatabase() async throws {
    let lab = try Lab()
    try await lab.epoch()
    try FileManager.default.removeItem(at: lab.database)
    #expect(try await lab.epoch() == UInt64(Self.start / 1_000))
  }

  @Test("a server that was killed between a commit and the file has a database that is ahead, which means nothing")
  func killed() async throws {
    let lab = try Lab()
    for _ in 1...3 { try await lab.epoch() }
    try lab.write("2\n")
    #expect(try await lab.epoch() == 0)
    #expect(try lab.written() == "4\n")
  }

  @Test("a database of an older version has no witness: it is written")
  func missing() async throws {
    let lab = try Lab()
    try await lab.epoch()
    try FileManager.default.removeItem(at: lab.witness)
    #expect(try await lab.epoch() == 0)
    #expect(try lab.written() == "2\n")
  }

  @Test(
    "a witness that can't be read begins a new epoch, and locks nobody out",
    arguments: ["", "7", "x\n", "-1\n", "7\n\n", "99999999999999999999\n", "9223372036854775807\n"])
  func damaged(text: String) async throws {
    let lab = try Lab()
    try await lab.epoch()
    try lab.write(text)
    #expect(try await lab.epoch() == UInt64(Self.start / 1_000))
    #expect(try lab.written() == "2\n")
    #expect(try await lab.epoch() == UInt64(Self.start / 1_000))
  }

  @Test("a witness that can't be written fails no commit")
  func unwritable() async throws {
    let lab = try Lab()
    let storage = try lab.open()
    let obstacle = lab.witness.appendingPathExtension("new")
    try FileManager.default.createDirectory(at: obstacle, withIntermediateDirectories: false)
    lab.now.value += DatabaseWitness.stepMilliseconds
    try await lab.commit(in: storage)
    try await until("the failure to be logged") {
      lab.log.value.contains { $0.hasPrefix("error ") && $0.contains("witness") }
    }
    try await storage.close()
    #expect(try lab.written() == "1\n" && lab.generation() > 1)
    try FileManager.default.removeItem(at: obstacle)
    #expect(try await lab.epoch() == 0)
  }

  @Test("a database that is marked begins one new epoch at its next start, however often it was marked")
  func marked() async throws {
    let lab = try Lab()
    try await lab.epoch()
    for _ in 1...2 { try RestoredCloud.mark(data: lab.holder.url) }
    #expect(try BankStatus(data: lab.holder.url).isMarked)
    #expect(try BankStatus(data: lab.holder.url).epoch == 0)
    #expect(try await lab.epoch() == UInt64(Self.start / 1_000))
    #expect(try !BankStatus(data: lab.holder.url).isMarked)
    lab.now.value += 1_000_000
    #expect(try await lab.epoch() == UInt64(Self.start / 1_000))
  }

  @Test("nothing is marked or released while a server has the folder, nor where there is no database")
  func locked() async throws {
    let lab = try Lab()
    try await lab.epoch()
    let folder = try DataFolder(at: lab.holder.url)
    let marking = #expect(throws: ServerError.self) { try RestoredCloud.mark(data: lab.holder.url) }
    #expect(marking?.code == .folderInUse)
    let releasing = await #expect(throws: ServerError.self) {
      _ = try await RestoredCloud.release(data: lab.holder.url, player: nil)
    }
    #expect(releasing?.code == .folderInUse)
    folder.unlock()
    let nowhere = lab.holder.url.appendingPathComponent("nowhere")
    #expect(throws: ServerError.self) { try RestoredCloud.mark(data: nowhere) }
    #expect(throws: ServerError.self) { try BankStatus(data: nowhere) }
    #expect(!FileManager.default.fileExists(atPath: nowhere.path))
  }
}
#endif
