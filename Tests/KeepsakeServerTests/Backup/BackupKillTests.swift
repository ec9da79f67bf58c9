#if Cloud && os(Linux)
import Foundation
import Glibc
import KeepsakeReplication
import KeepsakeSimulation
import KeepsakeStore
import KeepsakeSync
import TestSupport
import Testing

@testable import KeepsakeServer

/// `keepsake cloud backup` and `restore`, killed at random moments while devices save.
@Suite("Backups and restores under SIGKILL", .serialized, .hangLimit) struct BackupKillTests {
  private static let devices = 3
  /// Large contents that take a while to copy.
  private static let largeContents = 12
  /// Moments later than this many times what a whole run takes hit nothing.
  private static let longestMoment = 1.1

  private static func command() throws -> URL {
    let command = try #require(Bundle.main.executableURL).deletingLastPathComponent().appendingPathComponent("keepsake")
    try #require(FileManager.default.isExecutableFile(atPath: command.path), "\(command.path)")
    return command
  }

  /// Runs the command, and kills it after some time.
  ///
  /// - Returns: Its exit status; nil if it was killed.
  private static func run(_ arguments: [String], killAfter delay: Double? = nil) async throws -> Int32? {
    let process = Process()
    process.executableURL = try command()
    process.arguments = ["cloud"] + arguments
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    let (stream, continuation) = AsyncStream<Int32?>.makeStream()
    process.terminationHandler = { ended in
      continuation.yield(ended.terminationReason == .exit ? ended.terminationStatus : nil)
      continuation.finish()
    }
    try process.run()
    if let delay {
      try await Task.sleep(for: .seconds(delay))
      kill(process.processIdentifier, SIGKILL)
    }
    for await status in stream { return status }
    return nil
  }

  /// Saves without a pause until told otherwise, and counts what the cloud has acknowledged.
  private final class Saver: Sendable {
    let credentials: CloudCredentials
    private let acknowledged = Shared<[VersionID]>([])
    let isEnding = Shared(false)

    init(_ credentials: CloudCredentials) { self.credentials = credentials }

    var versions: [VersionID] { acknowledged.value }

    func run() async throws {
      let transport = HTTPTransport(credentials)
      var (number, cursor) = (UInt64(0), Cursor.start)
      var last: VersionID?
      while !isEnding.value {
        number += 1
        var source = SystemRandomNumberGenerator()
        let bytes = saveBytes(1_000, seed: number)
        // The cloud doesn't decode frames.
        let encoded = EncodedContent(hash: ContentHash(of: bytes), length: bytes.count, base: nil, bytes: bytes)
        let record = VersionRecord(
          id: VersionID(using: &source), slot: "auto", covers: last.map { [$0] } ?? [], contents: [encoded.hash],
          length: bytes.count, savedAtMilliseconds: Int64(number), writer: WriterID(1),
          provisional: false)
        let request = ExchangeRequest(cursor: cursor, versions: [record], contents: [encoded], limit: 100)
        let response = try await transport.exchange(request)
        guard case .accepted = response.outcome else { throw NeverHappened("a save was accepted: \(response)") }
        acknowledged.value.append(record.id)
        (cursor, last) = (response.cursor, record.id)
      }
    }
  }

  private func exported(_ credentials: CloudCredentials, from url: URL) async throws -> String {
    let client = Client(url: url, appKey: ServerProcess.appKey, token: credentials.token)
    return String(decoding: try await client.call("GET", "/v1/export").body, as: UTF8.self)
  }

  @Test("no killed backup passes as one, nothing acknowledged before a backup is lost, and a repeated command works")
  func kills() async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      let (file, restored) = (folder.appendingPathComponent("backup"), folder.appendingPathComponent("restored"))
      var server = try await ServerProcess.start(data: data)
      let account = HTTPAccount(url: server.url, appKey: ServerProcess.appKey)
      var savers: [Saver] = []
      for number in 0..<Self.devices { savers.append(Saver(try await account.register(name: "\(number)"))) }
      let client = Client(url: server.url, appKey: ServerProcess.appKey, token: savers[0].credentials.token)
      for number in 0..<Self.largeContents {
        let bytes = saveBytes(ServerLimits.inlineContentBytes + 1 + number, seed: UInt64(number))
        let answer = try await client.call(
          "PUT", "/v1/contents/\(ContentHash(of: bytes))", headers: ["Keepsake-Length": "\(bytes.count)"], body: bytes)
        try #require(answer.status == 201)
      }
      let saved = try await withThrowingTaskGroup(of: Void.self) { group in
        for saver in savers { group.addTask { try await saver.run() } }
        let outcome: Result<[[VersionID]], any Error>
        do {
          outcome = .success(try await backUp(data, to: file, savers))
        } catch {
          outcome = .failure(error)
        }
        for saver in savers { saver.isEnding.value = true }
        try await group.waitForAll()
        return try outcome.get()
      }
      await server.end(by: SIGTERM)

      // The restore, in the same way.
      var random = SeededGenerator(seed: 2)
      let began = ContinuousClock.now
      #expect(try await Self.run(["restore", "--from", file.path, "--data", restored.path]) == 0)
      let whole = (ContinuousClock.now - began) / .seconds(1)
      var killed = 0
      for round in 0..<TestDepth.backupKills {
        try FileManager.default.removeItem(at: restored)
        let arguments = ["restore", "--from", file.path, "--data", restored.path]
        let status = try await Self.run(
          arguments, killAfter: Double.random(in: 0...Self.longestMoment, using: &random) * whole)
        if status == nil { killed += 1 }
        let isWhole =
          FileManager.default.fileExists(atPath: restored.appendingPathComponent("cloud.sqlite").path)
          && !FileManager.default.fileExists(atPath: restored.appendingPathComponent("restoring").path)
        #expect(try await Self.run(arguments) == (isWhole ? 73 : 0), "round \(round)")
      }
      print("killed \(killed) of \(TestDepth.backupKills) restores")
      server = try await ServerProcess.start(data: restored)
      for (saver, versions) in zip(savers, saved) {
        let lines = try await exported(saver.credentials, from: server.url)
        let missing = versions.filter { !lines.contains($0.description) }
        #expect(missing.isEmpty && lines.contains("\"end\""), "\(missing.count) of \(versions.count) are lost")
      }
      await server.end(by: SIGTERM)
    }
  }

  /// Kills backups, and then makes one.
  ///
  /// - Returns: What each saver's cloud had acknowledged before that.
  private func backUp(_ data: URL, to file: URL, _ savers: [Saver]) async throws -> [[VersionID]] {
    var random = SeededGenerator(seed: 1)
    let arguments = ["backup", "--data", data.path, "--to", file.path]
    let began = ContinuousClock.now
    #expect(try await Self.run(arguments) == 0)
    let whole = (ContinuousClock.now - began) / .seconds(1)
    var killed = 0
    for round in 0..<TestDepth.backupKills {
      try FileManager.default.removeItem(at: file)
      let status = try await Self.run(
        arguments, killAfter: Double.random(in: 0...Self.longestMoment, using: &random) * whole)
      if status == nil { killed += 1 }
      if FileManager.default.fileExists(atPath: file.path) {
        _ = try CloudBackup.verify(file)
      } else {
        let versions = savers.map(\.versions)
        #expect(try await Self.run(arguments) == 0, "round \(round)")
        #expect(versions.allSatisfy { !$0.isEmpty })
      }
      let names = try FileManager.default.contentsOfDirectory(atPath: file.deletingLastPathComponent().path)
      #expect(!names.contains { $0.hasPrefix("backup.new") } || status == nil, "\(names)")
    }
    print("killed \(killed) of \(TestDepth.backupKills) backups")
    try await until("everyone to have saved") { savers.allSatisfy { $0.versions.count > 3 } }
    let versions = savers.map(\.versions)
    #expect(try await Self.run(arguments + ["--force"]) == 0)
    return versions
  }
}
#endif
