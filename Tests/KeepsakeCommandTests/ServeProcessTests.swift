#if Cloud && os(Linux)
import Foundation
import Glibc
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake serve` as a process of its own.
@Suite struct ServeProcessTests {
  private static let tool = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    .appendingPathComponent("keepsake")

  @Test("SIGHUP doesn't end a server, which notices a revoked key and logs in JSON; SIGTERM ends it with success")
  func signals() async throws {
    try #require(FileManager.default.isExecutableFile(atPath: Self.tool.path), "\(Self.tool.path)")
    try await TemporaryFolder.with { folder in
      let (output, errors) = (folder.appendingPathComponent("output"), folder.appendingPathComponent("errors"))
      let keys = folder.appendingPathComponent("keys")
      try Data("first-app-key\nsecond-app-key\n".utf8).write(to: keys)
      for file in [output, errors] { try Data().write(to: file) }
      let process = Process()
      process.executableURL = Self.tool
      process.arguments = ["serve", "--data", folder.appendingPathComponent("data").path, "--port", "0", "--json"]
      process.environment = ProcessInfo.processInfo.environment.merging([
        "KEEPSAKE_METRICS_PORT": "0", "KEEPSAKE_APP_KEYS_FILE": keys.path, "KEEPSAKE_LOG_FORMAT": "json",
      ]) { $1 }
      process.standardOutput = try FileHandle(forWritingTo: output)
      process.standardError = try FileHandle(forWritingTo: errors)
      process.standardInput = FileHandle.nullDevice
      try process.run()
      defer { if process.isRunning { Glibc.kill(process.processIdentifier, SIGKILL) } }
      try await until("the server listens") {
        try Data(contentsOf: output).contains(UInt8(ascii: "\n")) || !process.isRunning
      }
      let hello = try JSONDecoder().decode(ServeCommand.Hello.self, from: Data(contentsOf: output))
      #expect(hello.appKeys == ["first-app-key", "second-app-key"] && hello.metricsPort != nil)
      try Data("second-app-key\n".utf8).write(to: keys, options: .atomic)
      Glibc.kill(process.processIdentifier, SIGHUP)
      try await until("the signal is logged") {
        try String(contentsOf: errors, encoding: .utf8).contains("\"signal\":") || !process.isRunning
      }
      #expect(process.isRunning)
      Glibc.kill(process.processIdentifier, SIGTERM)
      try await until("the server has ended") { !process.isRunning }
      #expect(process.terminationStatus == 0 && process.terminationReason == .exit)
      let log = try String(contentsOf: errors, encoding: .utf8)
      for line in log.split(separator: "\n") {
        let fields = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        #expect(fields?["level"] != nil && fields?["message"] != nil, "\(line)")
      }
      #expect(!log.contains("app-key-"), "\(log)")
    }
  }
}
#endif
