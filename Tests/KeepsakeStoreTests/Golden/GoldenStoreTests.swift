import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// Stores of this release open in every later one, with everything that they contain.
///
/// The files are the compressed database of a closed store, and a list of what it has to contain. With
/// `KEEPSAKE_WRITE_FIXTURES=1` missing files are written; an existing one is never written again.
@Suite(.serialized) struct GoldenStoreTests {
  /// A store of an earlier format was written by the last release with that format. Format 1 had no saves that aren't
  /// downloaded, format 2 no table of what was performed.
  struct Golden: CustomTestStringConvertible, Sendable {
    let name: String
    let kind: Seal.Kind
    let portrait: String

    var testDescription: String { name }
    var request: SealRequest { SealLab.request(kind, player: kind == .none ? nil : "ada") }
  }

  static let current = [
    Golden(name: "unsealed", kind: .none, portrait: "store.txt"),
    Golden(name: "signed", kind: .signed, portrait: "store.txt"),
    Golden(name: "sealed", kind: .sealed, portrait: "store.txt"),
  ]
  static let earlier: [(Int32, Golden)] = [
    (1, Golden(name: "format-1", kind: .none, portrait: "format-1.txt")),
    (1, Golden(name: "format-1-sealed", kind: .sealed, portrait: "format-1.txt")),
    (2, Golden(name: "format-2", kind: .none, portrait: "format-2.txt")),
    (2, Golden(name: "format-2-signed", kind: .signed, portrait: "format-2.txt")),
    (2, Golden(name: "format-2-sealed", kind: .sealed, portrait: "format-2.txt")),
  ]
  private static let fixtures = Repository.root.appending(path: "Tests/KeepsakeStoreTests/Fixtures/v1")
  private static let maximumBytes = 1 << 20

  let folder: TemporaryFolder
  private var database: URL { folder.store.appendingPathComponent(Store.databaseName) }

  init() throws {
    folder = try TemporaryFolder()
    try FileManager.default.createDirectory(at: folder.store, withIntermediateDirectories: true)
  }

  private static func file(_ golden: Golden) -> URL { fixtures.appending(path: "\(golden.name).sqlite.zst") }

  private func place(_ golden: Golden) throws {
    try writeIfMissing(golden)
    try Zstd.expand(Data(contentsOf: Self.file(golden)), maximumBytes: Self.maximumBytes).write(to: database)
  }

  private func writeIfMissing(_ golden: Golden) throws {
    guard ProcessInfo.processInfo.environment["KEEPSAKE_WRITE_FIXTURES"] == "1", !StoreFiles.exists(Self.file(golden))
    else { return }
    let made = folder.url.appendingPathComponent("made")
    let store = try Store.open(at: made, seal: golden.request, writer: GoldenStore.writer)
    try GoldenStore.fill(store)
    try GoldenStore.fillDeferred(store)
    try GoldenStore.fillDecisions(store)
    try store.close()
    try FileManager.default.createDirectory(at: Self.fixtures, withIntermediateDirectories: true)
    try Zstd.compress(Data(contentsOf: made.appendingPathComponent(Store.databaseName))).write(to: Self.file(golden))
  }

  private func check(_ store: Store, _ golden: Golden) throws {
    let portrait = try store.read { try GoldenStore.portrait(of: $0) }
    let url = Self.fixtures.appending(path: golden.portrait)
    if ProcessInfo.processInfo.environment["KEEPSAKE_WRITE_FIXTURES"] == "1", !StoreFiles.exists(url) {
      try Data((portrait.joined(separator: "\n") + "\n").utf8).write(to: url)
    }
    let expected = try String(contentsOf: url, encoding: .utf8).split(separator: "\n").map(String.init)
    #expect(portrait.difference(from: expected).isEmpty)
  }

  /// Checks that the store can be written, and opened once more.
  private func goOn(_ store: Store, _ golden: Golden) throws {
    try store.save(Data("chapter 25".utf8), as: 25)
    try store.close()
    let again = try Store.open(at: folder.store, seal: golden.request)
    #expect(again.incidents.isEmpty && SealLab.findings(of: again).isEmpty)
    #expect(try again.read { try $0.heads(of: "main") } == [GoldenStore.version(24), id(25)].sorted())
    try again.close()
  }

  @Test(
    "a store of the first release opens without an incident, contains everything that it had, and can be written",
    arguments: current)
  func opens(golden: Golden) throws {
    try place(golden)
    let doctor = try StoreDoctor(at: folder.store, seal: golden.request)
    #expect(try doctor.examine().isSound)
    doctor.release()
    let reader = try StoreReader.open(at: folder.store, seal: golden.request)
    #expect(try reader.problems() == [])
    let store = try Store.open(at: folder.store, seal: golden.request)
    #expect(store.incidents.isEmpty && SealLab.findings(of: store).isEmpty)
    try check(store, golden)
    try goOn(store, golden)
  }

  @Test(
    "opening a store of an earlier format migrates everything in it; until then a reader and the doctor throw `misuse`",
    arguments: earlier)
  func migrates(format: Int32, golden: Golden) throws {
    try place(golden)
    let version = { [database] () throws -> Int32? in
      let queue = try DatabaseQueue(path: database.path)
      defer { try? queue.close() }
      return try queue.read { try Int32.fetchOne($0, sql: "PRAGMA user_version") }
    }
    #expect(try version() == format)
    #expect(errorCode { _ = try StoreReader.open(at: folder.store, seal: golden.request) } == .misuse)
    let doctor = try StoreDoctor(at: folder.store, seal: golden.request)
    #expect(errorCode { _ = try doctor.examine() } == .misuse)
    doctor.release()
    let store = try Store.open(at: folder.store, seal: golden.request)
    #expect(store.incidents.isEmpty && SealLab.findings(of: store).isEmpty)
    try check(store, golden)
    #expect(try store.read { try $0.notDownloadedVersions() }.isEmpty == (format == 1))
    try goOn(store, golden)
    #expect(try version() == Schema.currentVersion)
    _ = try StoreReader.open(at: folder.store, seal: golden.request)
  }
}
