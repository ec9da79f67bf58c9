#if Cloud && os(Linux)
import Foundation
import Glibc
import TestSupport
import Testing

@testable import KeepsakeServer

/// A process that rotates and forgets the secrets of a folder until it is killed: this test program again.
private enum Rotating {
  static let variable = "KEEPSAKE_TEST_ROTATING"

  static func process(on data: URL) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
    process.arguments = ["--testing-library", "swift-testing", "--filter", "RotatingProcessTests"]
    process.environment = ProcessInfo.processInfo.environment.merging([variable: data.path], uniquingKeysWith: { $1 })
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    return process
  }
}

struct RotatingProcessTests {
  @Test(
    "rotates the secrets of a folder until it is killed or its test has ended, for another test",
    .partOfAnotherTest(where: ProcessInfo.processInfo.environment[Rotating.variable] != nil))
  func rotate() throws {
    let path = try #require(ProcessInfo.processInfo.environment[Rotating.variable])
    let secrets = try ServerSecrets(data: URL(fileURLWithPath: path))
    let parent = getppid()
    var number: Int64 = 0
    // A test that crashed can't kill it.
    while parent != 1, getppid() == parent {
      number += 1
      if number % 5 == 0 { _ = try secrets.forgetEarlier() } else { _ = try secrets.rotate(now: number) }
    }
  }
}

@Suite("Rotations of the secret that are killed")
struct RotationKillTests {
  @Test("a kill at any moment of a rotation leaves secrets with which the running server and the next one work")
  func kills() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      let secrets = try ServerSecrets(data: folder)
      for round in 0..<4 {
        let before = try #require(secrets.read().first)
        let process = try Rotating.process(on: folder)
        try await until("the process rotates") { try secrets.read().first != before || !process.isRunning }
        // A different number of further rotations in each round.
        for _ in 0..<(round * 7) { _ = try secrets.read() }
        Glibc.kill(process.processIdentifier, SIGKILL)
        try await until("the process has ended") { !process.isRunning }
        let left = try secrets.read()
        #expect((1...ServerSecrets.kept).contains(left.count))
        let (client, _) = try await server.client.register()
        #expect(try await client.call("POST", "/v1/pairing").status == 201)
        #expect(try secrets.rotate(now: 0) > 1, "a killed command holds no lock")
        #expect(try await client.call("POST", "/v1/pairing").status == 201)
      }
      let (client, _) = try await server.client.register()
      try await server.stop()
      let next = try await LiveServer.start(data: folder)
      #expect(try await Client(server: next, token: client.token).call("POST", "/v1/pairing").status == 201)
      try await next.stop()
    }
  }

  @Test("what a killed rotation leaves beside the secret is never used")
  func leftover() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      let (client, _) = try await server.client.register()
      for rest in ["", "keepsake-secrets 1\n17", "keepsake-secrets 1\n1 \(String(repeating: "0", count: 64))\n"] {
        try Data(rest.utf8).write(to: folder.appendingPathComponent("secret.new"))
        #expect(try await client.call("POST", "/v1/pairing").status == 201)
      }
      #expect(try ServerSecrets(data: folder).rotate(now: 0) == 2)
      #expect(try await client.call("POST", "/v1/pairing").status == 201)
      try await server.stop()
    }
  }
}
#endif
