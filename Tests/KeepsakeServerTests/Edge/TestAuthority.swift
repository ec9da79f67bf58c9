#if Cloud
import Foundation
import TestSupport
import Testing

/// A private certificate authority of a test, made by the command openssl.
struct TestAuthority {
  /// Why there can't be one, or no client that trusts it; nil if there can.
  static let obstacle: String? = {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    let missing = ["openssl", "curl"].filter { name in
      !folders.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(name)") }
    }
    return missing.first.map { "there is no command \($0)" }
  }()

  /// The root's certificate, for clients.
  let root: URL
  private let rootKey: URL
  private let folder: URL

  init(in folder: URL) async throws {
    self.folder = folder
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    (root, rootKey) = (folder.appendingPathComponent("root.pem"), folder.appendingPathComponent("root.key"))
    try await Self.openssl([
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", rootKey.path,
      "-out", root.path, "-days", "2", "-subj", "/CN=Keepsake test root",
    ])
  }

  /// Writes a certificate for 127.0.0.1 and its key, each at once.
  func issue(certificate: URL, key: URL) async throws {
    let (request, new) = (folder.appendingPathComponent("request"), folder.appendingPathComponent("new"))
    let (newKey, extensions) = (folder.appendingPathComponent("new.key"), folder.appendingPathComponent("extensions"))
    try Data("subjectAltName=IP:127.0.0.1,DNS:localhost\n".utf8).write(to: extensions)
    try await Self.openssl([
      "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", newKey.path, "-out",
      request.path, "-subj", "/CN=localhost",
    ])
    try await Self.openssl([
      "x509", "-req", "-in", request.path, "-CA", root.path, "-CAkey", rootKey.path, "-CAcreateserial", "-days", "2",
      "-extfile", extensions.path, "-out", new.path,
    ])
    try Data(contentsOf: newKey).write(to: key, options: .atomic)
    try Data(contentsOf: new).write(to: certificate, options: .atomic)
  }

  private static func openssl(_ arguments: [String]) async throws {
    let ended = try await run(["openssl"] + arguments)
    try #require(ended.status == 0, "\(ended.text)")
  }

  /// Runs a program, without blocking one of the few threads that all tasks share, among them the server's.
  ///
  /// - Returns: Its exit status, and what it wrote.
  private static func run(_ command: [String]) async throws -> (status: Int32, text: String) {
    try await TemporaryFolder.with { folder in
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let output = folder.appendingPathComponent("output")
      try Data().write(to: output)
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = command
      process.standardInput = FileHandle.nullDevice
      process.standardOutput = try FileHandle(forWritingTo: output)
      process.standardError = FileHandle.nullDevice
      let (ends, continuation) = AsyncStream<Int32>.makeStream()
      process.terminationHandler = { continuation.yield($0.terminationStatus) }
      try process.run()
      let status = await ends.first { _ in true }
      return (status ?? -1, try String(contentsOf: output, encoding: .utf8))
    }
  }

  struct Answer {
    var status: Int
    var version: String
    var body: String
  }

  /// Sends a request with curl, which trusts this authority only; nil if there is no response.
  func ask(_ url: URL, _ path: String, _ arguments: [String] = []) async throws -> Answer? {
    let command =
      ["curl", "-sS", "--max-time", "\(Patience.limit.components.seconds)", "--cacert", root.path]
      + ["-w", "\n%{http_code} %{http_version}"] + arguments + [url.appendingPathComponent(path).absoluteString]
    let ended = try await Self.run(command)
    guard ended.status == 0 else { return nil }
    let lines = ended.text.split(separator: "\n", omittingEmptySubsequences: false)
    let words = try #require(lines.last).split(separator: " ")
    return Answer(
      status: try #require(words.first.flatMap { Int($0) }), version: String(try #require(words.last)),
      body: lines.dropLast().joined(separator: "\n"))
  }
}

extension Trait where Self == ConditionTrait {
  /// Skips the test where the commands openssl and curl aren't there.
  static var needsTestAuthority: Self {
    .enabled(if: TestAuthority.obstacle == nil, "\(TestAuthority.obstacle ?? "")")
  }
}
#endif
