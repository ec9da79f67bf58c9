import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#elseif canImport(Darwin)
import Darwin
#endif

/// How it is found out that files are gone, and what is said about the commit that finds it.
@Suite struct FilePresenceTests {
  let folder: TemporaryFolder
  private var files: StoreFiles { StoreFiles(folder: folder.store) }
  private var moved: URL { folder.url.appendingPathComponent("moved") }

  init() throws { folder = try TemporaryFolder() }

  private func removal(_ body: () throws -> Void) -> StoreError? {
    do {
      try body()
      return nil
    } catch {
      return error as? StoreError
    }
  }

  // MARK: Whether it is committed

  @Test("a commit that finds the files gone before it is written isn't stored, and its error says so")
  func before() throws {
    let store = try Store.open(at: folder.store)
    try store.save(Data("one".utf8), as: 1)
    try FileManager.default.moveItem(at: folder.store, to: moved)
    let error = removal { try store.save(Data("two".utf8), as: 2) }
    #expect(error?.code == .removed && error?.mayBeCommitted == false)
    #expect(errorCode { try store.close() } == .removed)
    let found = try Store.open(at: moved)
    defer { try? found.close() }
    #expect(try found.read { try $0.heads(of: "main") } == [id(1)])
  }

  @Test("a commit that finds the files gone after it was written says that it may be stored; later ones aren't stored")
  func after() throws {
    let store = try Store.open(at: folder.store)
    let (from, to) = (folder.store, moved)
    let error = removal {
      try store.submit { transaction, _ in
        try transaction.put(1)
        transaction.database.afterNextTransaction { _ in try? FileManager.default.moveItem(at: from, to: to) }
      }.wait()
    }
    #expect(error?.code == .removed && error?.mayBeCommitted == true)
    #expect(error?.description.contains("may be stored where those files are now") == true)
    let next = removal { try store.save(Data("two".utf8), as: 2) }
    #expect(next?.code == .removed && next?.mayBeCommitted == false)
    let end = removal { try store.close() }
    #expect(end?.code == .removed && end?.mayBeCommitted == false)
    let found = try Store.open(at: moved)
    defer { try? found.close() }
    #expect(try found.read { try $0.heads(of: "main") } == [id(1)])
  }

  @Test("a write of the game's tables that finds the files gone after it was written says that it may be stored")
  func recordsAfter() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let records = try RecordsDatabase.open(in: folder.store, beside: store) { _ in }
    let (from, to) = (folder.store, moved)
    let error = removal {
      try records.write { database in
        try database.execute(sql: "CREATE TABLE thing (number INTEGER)")
        database.afterNextTransaction { _ in try? FileManager.default.moveItem(at: from, to: to) }
      }
    }
    #expect(error?.code == .removed && error?.mayBeCommitted == true)
    let next = removal { try records.write { try $0.execute(sql: "INSERT INTO thing VALUES (1)") } }
    #expect(next?.code == .removed && next?.mayBeCommitted == false)
    #expect(errorCode { try records.close() } == .removed)
  }

  @Test(
    "a migration of the game's tables that finds the files gone says whether earlier migrations may be stored",
    arguments: [0, 1])
  func recordsMigration(_ failing: Int) throws {
    let store = try Store.open(at: folder.store)
    let records = try RecordsDatabase.open(in: folder.store, beside: store) { _ in }
    let (from, to) = (folder.store, moved)
    var migrator = DatabaseMigrator()
    for number in 0...failing {
      migrator.registerMigration("migration \(number)") { database in
        try database.execute(sql: "CREATE TABLE thing\(number) (number INTEGER)")
        guard number == failing else { return }
        try FileManager.default.moveItem(at: from, to: to)
        throw CancellationError()
      }
    }
    let error = removal { try records.migrate(migrator) }
    #expect(error?.code == .removed && error?.mayBeCommitted == (failing > 0))
    #expect(errorCode { try records.close() } == .removed)
    #expect(errorCode { try store.close() } == .removed)
    let found = try Store.open(at: moved)
    defer { try? found.close() }
    let tables = try RecordsDatabase.open(in: moved, beside: found) { _ in }
    defer { try? tables.close() }
    let names = try tables.reading {
      try String.fetchAll($0, sql: "SELECT name FROM sqlite_master WHERE name LIKE 'thing%'")
    }
    #expect(names == (0..<failing).map { "thing\($0)" })
  }

  // MARK: Gone

  @Test(
    "a file is gone if its server, device or file system has lost it; an error that may pass isn't taken for that",
    arguments: [
      (ENOENT, true), (ENOTDIR, true), (ESTALE, true), (ENOTCONN, true), (ENODEV, true), (ENXIO, true), (EIO, false),
      (EACCES, false), (EINTR, false), (ETIMEDOUT, false),
    ])
  func gone(number: Int32, isGone: Bool) { #expect(FileIdentity.isGone(number) == isGone) }

  // MARK: File systems that invent numbers

  /// Some file's number that isn't the lock's.
  private func otherNumber() throws -> FileIdentity { try #require(try FileIdentity(at: folder.url.path)) }

  private func makeFiles() throws {
    try FileManager.default.createDirectory(at: folder.store, withIntermediateDirectories: true)
    for url in [files.database, files.log] { try Data("some bytes".utf8).write(to: url) }
  }

  /// Replaces a file by a copy of itself, as a file system seems to that gives it another number.
  private func renumber(_ file: URL) throws {
    let copy = file.appendingPathExtension("copy")
    try FileManager.default.copyItem(at: file, to: copy)
    try FileManager.default.removeItem(at: file)
    try FileManager.default.moveItem(at: copy, to: file)
  }

  @Test("where a file's number depends on how it is looked at, files are present as long as there are some")
  func numbersByLook() throws {
    try makeFiles()
    let other = try otherNumber()
    let lock = try StoreLock(at: folder.store.appendingPathComponent("lock")) { _, _ in other }
    defer { lock.release() }
    let presence = FilePresence(files, lock: lock)
    try presence.capture()
    try renumber(files.log)
    try presence.check()
    try FileManager.default.removeItem(at: files.log)
    #expect(errorCode { try presence.check() } == .removed)
  }

  @Test("where files get other numbers while they are open, files are present as long as there are some")
  func changingNumbers() throws {
    try makeFiles()
    let changed = Shared<FileIdentity?>(nil)
    let lock = try StoreLock(at: folder.store.appendingPathComponent("lock")) { descriptor, path in
      try changed.value ?? FileIdentity(of: descriptor, path: path)
    }
    defer { lock.release() }
    let presence = FilePresence(files, lock: lock)
    try presence.capture()
    changed.value = try otherNumber()
    try renumber(files.database)
    try presence.check()
    try FileManager.default.removeItem(at: files.database)
    #expect(errorCode { try presence.check() } == .removed)
  }

  @Test("where numbers stay, a file that was replaced by its copy is another one")
  func replaced() throws {
    try makeFiles()
    let lock = try StoreLock(at: folder.store.appendingPathComponent("lock"))
    defer { lock.release() }
    let presence = FilePresence(files, lock: lock)
    try presence.capture()
    try presence.check()
    try renumber(files.database)
    #expect(errorCode { try presence.check() } == .removed)
  }
}
