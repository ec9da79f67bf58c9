import Foundation
import GRDB
import GRDBSQLite
import KeepsakeReplication
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeStore

extension DiskFaultTests {
  /// The disk fails while the game writes its own tables.
  @Suite(.serialized) struct RecordsFaultTests {
    private let folder: URL
    private let told = Shared<[StoreIncident]>([])

    init() throws {
      try #require(FaultyDisk.isInstalled)
      folder = TemporaryFolder.url(FaultyDisk.mark)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private func open() throws -> RecordsDatabase {
      try RecordsDatabase.open(in: folder) { [told] in told.value += [$0] }
    }

    private func add(_ number: Int, to records: RecordsDatabase) throws {
      try records.write { try $0.execute(sql: "INSERT INTO thing VALUES (?)", arguments: [number]) }
    }

    private func numbers(_ records: RecordsDatabase) throws -> [Int] {
      try records.reading { try Int.fetchAll($0, sql: "SELECT number FROM thing ORDER BY number") }
    }

    private func failing(_ fault: FaultyDisk.Fault, _ body: () throws -> Void) rethrows {
      FaultyDisk.fault.withLock { $0 = fault }
      defer { FaultyDisk.fault.withLock { $0 = nil } }
      try body()
    }

    @Test(
      """
      each cause of a failed write throws its own error every time; the next write works, and only failed ones are \
      missing
      """,
      arguments: [
        (FaultyDisk.Fault.write(SQLITE_FULL), StoreError.Code.diskFull), (.write(SQLITE_READONLY), .notPermitted),
        (.write(FaultyDisk.failedWrite), .io), (.sync(FaultyDisk.failedSync), .io),
      ])
    func tells(fault: FaultyDisk.Fault, expected: StoreError.Code) throws {
      defer { try? FileManager.default.removeItem(at: folder) }
      let records = try open()
      try records.write { try $0.execute(sql: "CREATE TABLE thing (number INTEGER PRIMARY KEY)") }
      try add(1, to: records)
      failing(fault) {
        for number in 2...4 {
          let code = errorCode { try add(number, to: records) }
          #expect(code == expected, "write \(number)")
        }
      }
      try add(5, to: records)
      #expect(try numbers(records) == [1, 5])
      #expect(Set(told.value.map(\.kind)) == (expected == .io ? [.reopened] : []))
      try records.close()
      let again = try open()
      defer { try? again.close() }
      #expect(try numbers(again) == [1, 5])
    }

    @Test("after a write has met damage, further writes are refused until the next opening, which checks the tables")
    func meetsDamage() throws {
      defer { try? FileManager.default.removeItem(at: folder) }
      let records = try open()
      try records.write { try $0.execute(sql: "CREATE TABLE thing (number INTEGER PRIMARY KEY)") }
      failing(.write(SQLITE_CORRUPT)) { #expect(errorCode { try add(1, to: records) } == .damaged) }
      #expect(errorCode { try add(1, to: records) } == .damaged)
      #expect(StoreFiles.exists(RecordsFiles(folder: folder).suspicion))
      try records.close()
      let again = try open()
      defer { try? again.close() }
      #expect(!StoreFiles.exists(RecordsFiles(folder: folder).suspicion))
      try add(2, to: again)
      #expect(try numbers(again) == [2])
    }

    @Test(
      """
      a mark of damage that can't be written is written at closing at the latest; if that fails too, an incident \
      reports it
      """)
    func owesNote() throws {
      let mark = RecordsFiles(folder: folder).suspicion
      defer { try? FileManager.default.removeItem(at: folder) }
      for isFree in [true, false] {
        told.value = []
        let records = try open()
        // A folder in the place of the mark can't be replaced by a file.
        try FileManager.default.createDirectory(
          at: mark.appendingPathComponent("inside"), withIntermediateDirectories: true)
        failing(.write(SQLITE_CORRUPT)) {
          let code = errorCode {
            try records.write { try $0.execute(sql: "CREATE TABLE thing_\(isFree) (number)") }
          }
          #expect(code == .damaged)
        }
        if isFree { try FileManager.default.removeItem(at: mark) }
        try records.close()
        if isFree {
          #expect(try !Data(contentsOf: mark).isEmpty && told.value == [])
        } else {
          #expect(told.value.map(\.kind) == [.unnoted])
        }
      }
    }

    @Test("records that were closed while their disk had failed refuse a write", .hangLimit)
    func closedInTrouble() throws {
      defer { try? FileManager.default.removeItem(at: folder) }
      let records = try open()
      try records.write { try $0.execute(sql: "CREATE TABLE thing (number INTEGER PRIMARY KEY)") }
      failing(.sync(FaultyDisk.failedSync)) { #expect(errorCode { try add(1, to: records) } == .io) }
      try records.close()
      #expect(errorCode { try add(2, to: records) } == .misuse)
    }

    @Test("closing without a time limit waits until reads have finished")
    func closesBesideRead() async throws {
      defer { try? FileManager.default.removeItem(at: folder) }
      let records = try open()
      let (gate, isOver) = (Gate(), Shared(false))
      let (hasWaited, wasOver) = try await onThread { () throws -> (Bool, Bool) in
        let reading = WatchedThread { () throws -> Void in
          try records.reading { _ in
            gate.pass()
            isOver.value = true
          }
        }
        gate.waitForArrival()
        let closing = WatchedThread { () throws -> Bool in
          try records.close()
          return isOver.value
        }
        let hasWaited = closing.waitUntilBlocked()
        gate.open()
        try reading.value()
        return (hasWaited, try closing.value())
      }
      #expect(hasWaited && wasOver)
      #expect(errorCode { try records.write { _ in } } == .misuse)
    }

    @Test("a write within a read that finds the disk failed throws instead of waiting for itself")
    func writesWithinRead() throws {
      defer { try? FileManager.default.removeItem(at: folder) }
      let records = try open()
      defer { try? records.close() }
      try records.write { try $0.execute(sql: "CREATE TABLE thing (number INTEGER PRIMARY KEY)") }
      failing(.sync(FaultyDisk.failedSync)) { #expect(errorCode { try add(1, to: records) } == .io) }
      let code = errorCode { try records.reading { _ in try add(2, to: records) } }
      #expect(code == .io)
      try add(3, to: records)
      #expect(try numbers(records) == [3])
    }
  }
}
