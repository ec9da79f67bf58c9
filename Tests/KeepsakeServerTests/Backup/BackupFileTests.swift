#if Cloud && os(Linux)
import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// The file of a backup: what is in it, and what is done with one that isn't whole.
@Suite("The file of a backup", .serialized, .hangLimit) struct BackupFileTests {
  /// A stopped server's folder, with small and large contents, and its backup.
  private struct Stage {
    let folder: URL
    var data: URL { folder.appendingPathComponent("server") }
    var file: URL { folder.appendingPathComponent("backup") }
    var restored: URL { folder.appendingPathComponent("restored") }
    let container: ContainerID

    init(in folder: URL, largeContents: Int = 2) async throws {
      self.folder = folder
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      let (client, account) = try await server.client.register()
      container = account.container
      for number in 0..<largeContents {
        let bytes = saveBytes(ServerLimits.inlineContentBytes + 1 + number * 700, seed: UInt64(number))
        try await Self.put(bytes, client)
      }
      try await Self.put(saveBytes(5_000, seed: 99), client)
      _ = try ServerKeys(data: folder.appendingPathComponent("server")).create("shop")
      _ = try AppRegistry(data: folder.appendingPathComponent("server")).create("dungeon")
      try await server.stop()
    }

    static func put(_ bytes: Data, _ client: Client) async throws {
      let answer = try await client.call(
        "PUT", "/v1/contents/\(ContentHash(of: bytes))", headers: ["Keepsake-Length": "\(bytes.count)"], body: bytes)
      try #require(answer.status == 201, "\(String(decoding: answer.body, as: UTF8.self))")
    }

    func names(in folder: URL) throws -> Set<String> {
      Set(try FileManager.default.contentsOfDirectory(atPath: folder.path))
    }

    /// Tries to restore the file, which must fail and leave nothing behind.
    func refusal(_ file: URL) throws -> BackupError.Code? {
      do {
        _ = try BackupRestore.restore(file, to: restored)
        return nil
      } catch let error as BackupError {
        #expect(!FileManager.default.fileExists(atPath: restored.path))
        #expect(throws: BackupError.self) { _ = try CloudBackup.verify(file) }
        return error.code
      }
    }
  }

  private static func permissions(_ url: URL) throws -> Int {
    try #require(FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? Int)
  }

  @Test("is an archive that tar lists and sha256sum verifies, readable by its owner only, with nothing beside it")
  func archive() async throws {
    try await TemporaryFolder.with { folder in
      let stage = try await Stage(in: folder)
      let summary = try CloudBackup.make(of: stage.data, to: stage.file)
      #expect(try Self.permissions(stage.file) == 0o600)
      #expect(try stage.names(in: folder) == ["server", "backup"])
      let size = try #require(FileManager.default.attributesOfItem(atPath: stage.file.path)[.size] as? Int)
      #expect(summary.fileBytes == Int64(size) && summary.contents == 2)
      #expect(try CloudBackup.verify(stage.file) == summary)

      let unpacked = folder.appendingPathComponent("unpacked")
      try FileManager.default.createDirectory(at: unpacked, withIntermediateDirectories: true)
      let script = "tar xf \"$0\" -C \"$1\" && cd \"$1\" && sha256sum --quiet -c SHA256SUMS && ls -l"
      let (backup, path) = (stage.file.path, unpacked.path)
      let ended = try await onThread {
        try ChildProcess.run(URL(fileURLWithPath: "/bin/sh"), ["-ec", script, backup, path])
      }
      #expect(ended.status == 0, "\(ended.errors)")
      #expect(
        try stage.names(in: unpacked) == [
          "backup.json", "SHA256SUMS", "cloud.sqlite", "contents", "secret", "app-key", "server-keys", "apps",
        ])
      for name in ["secret", "app-key", "server-keys", "apps"] {
        #expect(
          try Data(contentsOf: unpacked.appendingPathComponent(name))
            == Data(contentsOf: stage.data.appendingPathComponent(name)))
      }
    }
  }

  @Test("every file of a data folder is in a backup or of no use there")
  func everyFile() async throws {
    try await TemporaryFolder.with { folder in
      let stage = try await Stage(in: folder)
      let known = DataFolder.transientNames.union(DataFolder.keptNames).union([DataFolder.databaseName])
      for name in try stage.names(in: stage.data)
      where !name.hasSuffix(".lock") && !name.hasPrefix(DataFolder.databaseName + "-") {
        #expect(known.contains(name), "decide whether a backup needs \(name): DataFolder.keptNames or .transientNames")
      }
    }
  }

  @Test("a restored folder has what the backup has, readable by its owner only, and its server begins a new epoch")
  func restored() async throws {
    try await TemporaryFolder.with { folder in
      let stage = try await Stage(in: folder)
      let summary = try CloudBackup.make(of: stage.data, to: stage.file)
      // An empty folder that everybody may read, such as a new file system.
      try FileManager.default.createDirectory(
        at: stage.restored, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
      #expect(try BackupRestore.restore(stage.file, to: stage.restored) == summary)
      #expect(
        try stage.names(in: stage.restored) == [
          "cloud.sqlite", "contents", "secret", "app-key", "server-keys", "apps", "witness", "lock",
        ])
      for name in ["cloud.sqlite", "secret", "app-key", "server-keys", "apps", "witness"] {
        #expect(try Self.permissions(stage.restored.appendingPathComponent(name)) == 0o600, "\(name)")
      }
      #expect(try Self.permissions(stage.restored.appendingPathComponent("contents")) == 0o700)
      #expect(
        try stage.names(in: stage.restored.appendingPathComponent("contents"))
          == stage.names(in: stage.data.appendingPathComponent("contents")))
      let before = try BankStatus(data: stage.restored)
      #expect(before.isMarked && before.epoch == 0)
      let server = try await LiveServer.start(data: stage.restored)
      #expect(try BankStatus(data: stage.restored).epoch > 0)
      try await server.stop()
      // The backup itself is restored as often as wanted, but into empty folders only.
      #expect(throws: BackupError.self) { _ = try BackupRestore.restore(stage.file, to: stage.restored) }
    }
  }

  @Test("a backup that was cut anywhere is refused, and nothing is written")
  func cut() async throws {
    try await TemporaryFolder.with { folder in
      let stage = try await Stage(in: folder, largeContents: 1)
      _ = try CloudBackup.make(of: stage.data, to: stage.file)
      let whole = try Data(contentsOf: stage.file)
      let other = folder.appendingPathComponent("cut")
      var lengths = Array(stride(from: 0, to: 4_096, by: 97)) + [1_535, 1_536, 1_537]
      lengths += (1...40).map { whole.count - $0 * 37 } + [whole.count - 1, whole.count / 2]
      for length in lengths {
        try whole.prefix(length).write(to: other)
        let code = try stage.refusal(other)
        #expect(code == .damaged || (code == .notBackup && length < 2_048), "cut to \(length): \(code as Any)")
      }
      try (whole + Data(count: 1)).write(to: other)
      #expect(try stage.refusal(other) == .damaged)
    }
  }

  @Test("a backup with any altered byte is refused, and nothing is written")
  func altered() async throws {
    try await TemporaryFolder.with { folder in
      let stage = try await Stage(in: folder, largeContents: 1)
      _ = try CloudBackup.make(of: stage.data, to: stage.file)
      let whole = try Data(contentsOf: stage.file)
      let other = folder.appendingPathComponent("altered")
      // Every byte around headers, and some of everything else.
      var places = Array(0..<2_600) + Array(stride(from: 2_600, to: whole.count, by: whole.count / 150))
      places += Array((whole.count - 2_600)..<whole.count)
      try whole.write(to: other)
      let handle = try FileHandle(forUpdating: other)
      for place in places {
        for flip: UInt8 in place % 7 == 0 ? [1, 0x80] : [0x20] {
          try handle.seek(toOffset: UInt64(place))
          try handle.write(contentsOf: Data([whole[place] ^ flip]))
          do {
            _ = try CloudBackup.verify(other)
            Issue.record("the byte \(place) was altered, and nobody noticed")
          } catch let error as BackupError {
            #expect(error.code == .damaged || error.code == .notBackup || error.code == .newerFormat, "\(place)")
          }
          try handle.seek(toOffset: UInt64(place))
          try handle.write(contentsOf: Data([whole[place]]))
        }
      }
      try handle.close()
      #expect(try CloudBackup.verify(other) == CloudBackup.verify(stage.file))
    }
  }

  @Test("what isn't a backup, a newer one, an existing file and a folder in use are refused with their own errors")
  func refusals() async throws {
    try await TemporaryFolder.with { folder in
      let stage = try await Stage(in: folder, largeContents: 0)
      _ = try CloudBackup.make(of: stage.data, to: stage.file)
      let other = folder.appendingPathComponent("other")
      for bytes in [Data(), Data(count: 10_000), saveBytes(9_000, seed: 1)] {
        try bytes.write(to: other)
        #expect(try stage.refusal(other) == .notBackup)
      }
      #expect(try stage.refusal(stage.data.appendingPathComponent("cloud.sqlite")) == .notBackup)
      #expect(try stage.refusal(folder.appendingPathComponent("nothing")) == .inputOutput)

      #expect(throws: BackupError.self) { _ = try CloudBackup.make(of: stage.data, to: stage.file) }
      _ = try CloudBackup.make(of: stage.data, to: stage.file, replacing: true)
      #expect(throws: ServerError.self) { _ = try CloudBackup.make(of: folder, to: other.appendingPathExtension("x")) }
      #expect(throws: (any Error).self) {
        _ = try CloudBackup.make(of: stage.data, to: folder.appendingPathComponent("no/such/folder"))
      }

      // A folder with anything in it, and one that a server has locked.
      let full = folder.appendingPathComponent("full")
      try FileManager.default.createDirectory(at: full, withIntermediateDirectories: true)
      try Data("mine".utf8).write(to: full.appendingPathComponent("secret"))
      #expect(throws: BackupError.self) { _ = try BackupRestore.restore(stage.file, to: full) }
      #expect(try stage.names(in: full) == ["secret"])
      let empty = folder.appendingPathComponent("empty")
      let lock = try DataFolder.lock(empty)
      #expect(throws: ServerError.self) { _ = try BackupRestore.restore(stage.file, to: empty) }
      DataFolder.unlock(lock)
      _ = try BackupRestore.restore(stage.file, to: empty)
    }
  }

  @Test("a content that vanishes while it is needed makes the backup one of a later moment; a lost one is counted")
  func vanishing() async throws {
    try await TemporaryFolder.with { folder in
      let stage = try await Stage(in: folder, largeContents: 3)
      let contents = stage.data.appendingPathComponent("contents")
      let names = try stage.names(in: contents).sorted()
      try #require(names.count == 3)
      let hidden = folder.appendingPathComponent("hidden")
      try FileManager.default.createDirectory(at: hidden, withIntermediateDirectories: true)
      func move(_ name: String, from old: URL, to new: URL) throws {
        try FileManager.default.moveItem(at: old.appendingPathComponent(name), to: new.appendingPathComponent(name))
      }
      for name in names.dropFirst() { try move(name, from: contents, to: hidden) }
      var copied: Int64 = 0
      // The second one comes while the first is copied, and so does the third, which is removed while the second is
      // copied at the database's moment.
      let database = try DatabaseQueue(path: stage.data.appendingPathComponent("cloud.sqlite").path)
      let summary = try CloudBackup.make(of: stage.data, to: stage.file) { progress in
        guard progress.step == .contents else { return }
        if copied == 0 { for name in names.dropFirst() { try move(name, from: hidden, to: contents) } }
        let half = Int64(ServerLimits.inlineContentBytes) * 3 / 2
        if copied < half, progress.doneBytes > half {
          try database.write { try $0.execute(sql: "DELETE FROM content WHERE file = ?", arguments: [names[2]]) }
          try move(names[2], from: contents, to: hidden)
        }
        copied = progress.doneBytes
      }
      #expect(summary.contents == 2 && summary.lostContents == 0)
      _ = try BackupRestore.restore(stage.file, to: stage.restored)
      #expect(try stage.names(in: stage.restored.appendingPathComponent("contents")) == Set(names.prefix(2)))

      // One that was lost before.
      try move(names[0], from: contents, to: hidden)
      let second = folder.appendingPathComponent("second")
      let lacking = try CloudBackup.make(of: stage.data, to: second)
      #expect(lacking.contents == 1 && lacking.lostContents == 1)
      #expect(try BackupRestore.restore(second, to: folder.appendingPathComponent("other")).lostContents == 1)
      try database.close()
    }
  }

  @Test("a server stops in good order while its backup is being made, and the backup is whole")
  func stopping() async throws {
    try await TemporaryFolder.with { folder in
      let stage = try await Stage(in: folder, largeContents: 1)
      let server = try await LiveServer.start(data: stage.data)
      _ = try await server.client.register()
      let (isReading, hasStopped) = (Shared(false), Shared(false))
      let (data, file) = (stage.data, stage.file)
      async let made = onThread {
        try CloudBackup.make(of: data, to: file) { progress in
          guard progress.step == .database else { return }
          isReading.value = true
          while !hasStopped.value { usleep(1_000) }
        }
      }
      try await until("the database to be read") { isReading.value }
      do {
        try await server.stop()
      } catch {
        hasStopped.value = true
        throw error
      }
      hasStopped.value = true
      #expect(try await made == CloudBackup.verify(stage.file))
      try await LiveServer.start(data: stage.data).stop()
    }
  }

  @Test("no server starts on a folder in which a restore was interrupted, and a stopped one leaves nothing")
  func interrupted() async throws {
    try await TemporaryFolder.with { folder in
      let stage = try await Stage(in: folder)
      _ = try CloudBackup.make(of: stage.data, to: stage.file)
      for step in [BackupProgress.Step.verifying, .restoring] {
        #expect(throws: BackupError.self) {
          _ = try BackupRestore.restore(stage.file, to: stage.restored) { progress in
            if progress.step == step, progress.doneBytes > 100_000 { throw CancellationError() }
          }
        }
        #expect(!FileManager.default.fileExists(atPath: stage.restored.path))
      }
      for step in [BackupProgress.Step.contents, .database, .verifying] {
        #expect(throws: BackupError.self) {
          _ = try CloudBackup.make(of: stage.data, to: folder.appendingPathComponent("stopped")) { progress in
            if progress.step == step { throw CancellationError() }
          }
        }
        #expect(try stage.names(in: folder) == ["server", "backup"])
      }

      // As after a SIGKILL in the last moment.
      let restoring = stage.restored.appendingPathComponent(DataFolder.restoringName)
      try FileManager.default.createDirectory(at: restoring, withIntermediateDirectories: true)
      try Data("half".utf8).write(to: stage.restored.appendingPathComponent("secret"))
      try Data("half".utf8).write(to: restoring.appendingPathComponent("cloud.sqlite"))
      await #expect(throws: ServerError.self) { _ = try await LiveServer.start(data: stage.restored) }
      _ = try BackupRestore.restore(stage.file, to: stage.restored)
      try await LiveServer.start(data: stage.restored).stop()
    }
  }
}
#endif
