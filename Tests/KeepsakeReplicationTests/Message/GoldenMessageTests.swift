import Foundation
import KeepsakeReplication
import TestSupport
import Testing

/// Every later release can read what devices and servers of this release send, in JSON and in the binary body of an
/// exchange.
///
/// With `KEEPSAKE_WRITE_FIXTURES=1` missing recordings are written; an existing one is never overwritten.
@Suite struct GoldenMessageTests {
  struct Golden: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// Checks that a recorded message is decoded and encoded as expected.
    let check: @Sendable () throws -> Void

    init<Message: Codable & Equatable & Sendable>(
      _ name: String, _ message: Message, encode: @escaping @Sendable (Message) throws -> Data,
      decode: @escaping @Sendable (Data) throws -> Message
    ) {
      testDescription = name
      check = {
        let file = GoldenMessageTests.fixtures.appending(path: name)
        if ProcessInfo.processInfo.environment["KEEPSAKE_WRITE_FIXTURES"] == "1",
          !FileManager.default.fileExists(atPath: file.path)
        {
          try FileManager.default.createDirectory(at: GoldenMessageTests.fixtures, withIntermediateDirectories: true)
          try encode(message).write(to: file)
        }
        let recorded = try Data(contentsOf: file)
        #expect(try decode(recorded) == message)
        // The other way round: devices of this release sync with those of the first.
        #expect(try encode(message) == recorded)
      }
    }

    static func json<Message: Codable & Equatable & Sendable>(_ name: String, _ message: Message) -> Golden {
      Golden(
        name + ".json", message, encode: { try CodingTests.encoder().encode($0) },
        decode: { try JSONDecoder().decode(Message.self, from: $0) })
    }

    static func binary<Message: Codable & Equatable & Sendable>(_ name: String, _ message: Message) -> Golden {
      Golden(
        name + ".exchange", message, encode: { try ExchangeBody.encode($0) },
        decode: { try ExchangeBody.decode(Message.self, from: $0) })
    }
  }

  static let fixtures = Repository.root.appending(path: "Tests/KeepsakeReplicationTests/Fixtures/v1")

  static let all: [Golden] =
    GoldenMessages.requests.flatMap { [.json($0.name, $0.message), .binary($0.name, $0.message)] }
    + GoldenMessages.responses.flatMap { [.json($0.name, $0.message), .binary($0.name, $0.message)] }
    + GoldenMessages.events.map { .json($0.name, $0.message) }
    + GoldenMessages.devices.map { .json($0.name, $0.message) }

  @Test("a message recorded from the first release is decoded correctly, and encoded as the same bytes", arguments: all)
  func reads(golden: Golden) throws { try golden.check() }

  @Test("every recorded message is read by a test")
  func complete() throws {
    let files = try FileManager.default.contentsOfDirectory(atPath: Self.fixtures.path)
    #expect(Set(files) == Set(Self.all.map(\.testDescription)))
  }
}
