#if Cloud
import Foundation
import KeepsakeReplication
import Testing

@testable import KeepsakeSync
import TestSupport

/// A device in another language: the client in Examples/ForeignClient, which was written from docs/PROTOCOL.md and uses
/// nothing of this package. Each call is a separate process.
struct PythonDevice: Sendable {
  /// Why it can't run here; nil if it can.
  static let obstacle: Comment? = {
    let folders = ["/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin"]
    let missing = ["python3", "zstd"].filter { tool in
      !folders.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(tool)") }
    }
    return missing.isEmpty ? nil : Comment(rawValue: "skipped: \(missing.joined(separator: " and ")) isn't installed")
  }()
  static let folder = Repository.root.appending(path: "Examples/ForeignClient")

  /// The state that the client prints.
  struct Shown: Decodable, Sendable {
    struct Head: Decodable, Sendable {
      var id: VersionID
      var sha256: ContentHash
      var length: Int
      var title: String?
    }
    var slots: [String: [Head]]
    /// The number of groups that the cloud hasn't accepted.
    var waiting: Int
    var refused: [Refusal]
    var cursor: Cursor
    var exchanges: Int
    var restarts: Int

    func hashes(of slot: String) -> Set<ContentHash> { Set((slots[slot] ?? []).map(\.sha256)) }
  }

  struct Failed: Error, CustomStringConvertible {
    var words: [String]
    var output: String
    var description: String { "\(words.joined(separator: " ")) ended with: \(output)" }
  }

  let home: URL

  init(at home: URL) { self.home = home }

  /// Another device of the player of `device`.
  static func joining(
    _ device: Device, of server: LiveServer, in folder: URL, name: String = "python", via url: URL? = nil
  ) async throws -> Self {
    let code = try await HTTPAccount.pairingCode(for: device.credentials).code
    let python = PythonDevice(at: folder.appendingPathComponent(name))
    try await python.run("join", (url ?? server.url).absoluteString, server.appKey, code)
    return python
  }

  // MARK: Commands

  @discardableResult
  func run(_ words: String..., input: String = "") async throws -> String { try await run(words, input: input) }

  private func run(_ words: [String], input: String = "") async throws -> String {
    let process = try start(words, input: input)
    let status = await process.ended.value
    guard status == 0 else { throw Failed(words: words, output: try process.output()) }
    return try process.output()
  }

  @discardableResult
  func sync(limit: Int = 1_000) async throws -> Shown { try Self.shown(try await run("sync", "--limit", "\(limit)")) }

  func shown() async throws -> Shown { try Self.shown(try await run("show")) }

  private static func shown(_ output: String) throws -> Shown {
    try JSONDecoder().decode(Shown.self, from: Data(output.utf8))
  }

  func save(_ bytes: Data, to slot: String, title: String = "") async throws {
    try await run("save", slot, try file(bytes).path, title)
  }

  /// The hash of each head's bytes, which the client writes to a file.
  func load(_ slot: String) async throws -> Set<ContentHash> {
    let place = home.appendingPathComponent("loaded-\(UUID().uuidString)")
    try await run("load", slot, place.path)
    let names = try FileManager.default.contentsOfDirectory(atPath: home.path).filter {
      $0.hasPrefix(place.lastPathComponent)
    }
    return Set(try names.map { ContentHash(of: try Data(contentsOf: home.appendingPathComponent($0))) })
  }

  /// Makes all changes in one commit; each is a command with its arguments.
  func together(_ changes: [[String]]) async throws {
    let lines = try changes.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) + "\n" }
    try await run("together", input: lines.joined())
  }

  /// A file with these bytes, for `save` in `together`.
  func file(_ bytes: Data) throws -> URL {
    let file = home.appendingPathComponent("save-\(UUID().uuidString)")
    try bytes.write(to: file)
    return file
  }

  /// The client's stored state, which a running process doesn't print. The file is always replaced as a whole.
  private struct State: Decodable {
    var cells: [String: CellState]
    var versions: [String: VersionRecord]
  }

  private func state() throws -> State {
    try JSONDecoder().decode(State.self, from: try Data(contentsOf: home.appendingPathComponent("state.json")))
  }

  /// Waits until the client has a version with this content.
  func until(shows content: ContentHash) async throws {
    try await TestSupport.until("showing \(content)") {
      try state().versions.values.contains { $0.contents == [content] }
    }
  }

  /// The values that the client stores.
  func cells() throws -> [CellKey: CellState] {
    let state = try state()
    return Dictionary(
      uniqueKeysWithValues: try state.cells.map { key, cell in
        let names = try JSONDecoder().decode([String].self, from: Data(key.utf8))
        return (CellKey(collection: names[0], key: names[1]), cell)
      })
  }

  // MARK: Processes

  /// A running process of the client, which can be killed at any point.
  struct Running: Sendable {
    fileprivate let process: Process
    fileprivate let file: URL
    let ended: Task<Int32, Never>

    func output() throws -> String { String(decoding: try Data(contentsOf: file), as: UTF8.self) }

    /// Kills the process as a power cut would.
    func kill() async {
      Foundation.kill(process.processIdentifier, SIGKILL)
      _ = await ended.value
    }

    /// Waits until the process has printed this many lines.
    func lines(_ count: Int) async throws -> [String] {
      func lines() throws -> [String] { try output().split(separator: "\n").map(String.init) }
      try await TestSupport.until("\(count) lines of \((try? output()) ?? "")") { try lines().count >= count }
      return try lines()
    }
  }

  func start(_ words: [String], input: String = "") throws -> Running {
    try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
    let number = UUID().uuidString
    let (output, said) = (
      home.appendingPathComponent("output-\(number)"), home.appendingPathComponent("input-\(number)")
    )
    try Data().write(to: output)
    try Data(input.utf8).write(to: said)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", Self.folder.appending(path: "keepsake_client.py").path, home.path] + words
    // No bytecode is written beside its sources, and no proxy is used for a server on this machine.
    process.environment = ProcessInfo.processInfo.environment.merging([
      "PYTHONDONTWRITEBYTECODE": "1", "no_proxy": "127.0.0.1",
    ]) { $1 }
    process.standardInput = try FileHandle(forReadingFrom: said)
    let handle = try FileHandle(forWritingTo: output)
    process.standardOutput = handle
    process.standardError = handle
    let (stream, continuation) = AsyncStream<Int32>.makeStream()
    process.terminationHandler = {
      continuation.yield($0.terminationReason == .exit ? $0.terminationStatus : -1)
      continuation.finish()
    }
    try process.run()
    return Running(process: process, file: output, ended: Task { await stream.first { _ in true } ?? -1 })
  }
}
#endif
