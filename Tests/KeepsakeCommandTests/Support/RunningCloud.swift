#if Cloud && os(Linux)
import Foundation
import Glibc
import TestSupport

@testable import KeepsakeCommand

/// A cloud as a process of its own, for the time of a test.
struct RunningCloud {
  let url: String
  let appKey: String
  /// The address of the port for the studio.
  let adminURL: String

  /// The words of `keepsake serve` for the webhook.
  ///
  /// - Parameter folder: Where its file of secrets is written.
  private static func awayBackend(in folder: URL) throws -> [String] {
    let secrets = folder.appendingPathComponent("webhook-secrets")
    try Data((String(repeating: "5a", count: 32) + "\n").utf8).write(to: secrets)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secrets.path)
    // Nothing listens on this port, which only the superuser could open.
    return ["--webhook", "shop url=http://127.0.0.1:1/hook secrets=\(secrets.path)"]
  }

  /// - Parameters:
  ///   - more: Further words of `keepsake serve`.
  ///   - hasWebhook: Whether it has a webhook, `shop`, whose backend is away.
  ///   - body: Gets the cloud, and an empty folder.
  static func with(
    _ more: [String] = [], hasWebhook: Bool = false, _ body: (RunningCloud, URL) async throws -> Void
  ) async throws {
    try await TemporaryFolder.with { root in
      let output = root.appendingPathComponent("output")
      try Data().write(to: output)
      let webhook = try hasWebhook ? awayBackend(in: root) : []
      let process = Process()
      process.executableURL = Tool.url
      process.arguments =
        [
          "serve", "--data", root.appendingPathComponent("cloud").path, "--port", "0", "--admin-port", "0", "--json",
        ] + more + webhook
      process.standardOutput = try FileHandle(forWritingTo: output)
      process.standardError = FileHandle.nullDevice
      process.standardInput = FileHandle.nullDevice
      try process.run()
      defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
      try await until("the server listens") {
        try Data(contentsOf: output).contains(UInt8(ascii: "\n")) || !process.isRunning
      }
      let ready = try JSONDecoder().decode(ServeCommand.Hello.self, from: Data(contentsOf: output))
      let folder = root.appendingPathComponent("here")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let adminURL = "http://127.0.0.1:\(ready.adminPort ?? 0)"
      try await body(RunningCloud(url: ready.url, appKey: ready.appKey, adminURL: adminURL), folder)
      kill(process.processIdentifier, SIGTERM)
      try await until("the server has ended") { !process.isRunning }
    }
  }
}
#endif
