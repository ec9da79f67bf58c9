import Foundation
import KeepsakeReplication
import KeepsakeStore
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A child process saves as fast as it can and writes down what it was told is durable; a thread of its own kills it.
@Suite(.serialized) struct CrashTests {
  @Test("no save that was acknowledged is lost when the game is killed, thirty times over")
  func survivesKills() async throws {
    let folder = try TemporaryFolder()
    let path = folder.url.path
    var furthest: UInt64 = 0
    for round in 0..<30 {
      await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, round = round as Int] in
        try CrashTests.saveUntilKilled(path: path, round: round)
      }
      let acknowledged = try Self.acknowledged(path)
      let store = try Store.open(at: folder.store)
      let (newest, bytes) = try store.read { transaction -> (UInt64, Data) in
        let heads = try transaction.heads(of: "main")
        #expect(heads.count <= 1)
        guard let head = heads.first, let version = try transaction.version(head) else { return (0, Data()) }
        return (head.low, try transaction.plainContent(version.record.contents[0]))
      }
      try store.close()
      #expect(newest >= acknowledged, "round \(round): acknowledged \(acknowledged), found \(newest)")
      if newest > 0 { #expect(bytes == Self.save(newest), "round \(round)") }
      furthest = max(furthest, newest)
    }
    // Six times 0, 1, 2, 3 and 4 at least.
    #expect(furthest >= 60)
    print("killed 30 times, \(furthest) saves")
  }

  static func save(_ number: UInt64) -> Data {
    var random = SeededRandom(seed: 9)
    return random.bytes(2_000) + Data("save \(number)".utf8)
  }

  static func acknowledged(_ path: String) throws -> UInt64 {
    let file = URL(fileURLWithPath: path).appendingPathComponent("acknowledged")
    guard FileManager.default.fileExists(atPath: file.path) else { return 0 }
    let bytes = try Data(contentsOf: file)
    let whole = bytes.count / 8
    guard whole > 0 else { return 0 }
    return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: (whole - 1) * 8, as: UInt64.self) }
  }

  static func saveUntilKilled(path: String, round: Int) throws {
    let folder = URL(fileURLWithPath: path)
    let store = try Store.open(at: folder.appendingPathComponent("store"))
    var number = try store.read { try $0.heads(of: "main").first?.low ?? 0 }
    let file = open(folder.appendingPathComponent("acknowledged").path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    let saved = Shared(0)
    let killer = Thread {
      // Some rounds die while the first save is under way, others a few saves later, at some point of the next.
      while saved.value < round % 5 { usleep(100) }
      usleep(UInt32(round) * 97 % 2_000)
      kill(getpid(), SIGKILL)
    }
    killer.start()
    while true {
      number += 1
      try store.save(save(number), as: number)
      withUnsafeBytes(of: number) { _ = write(file, $0.baseAddress, $0.count) }
      saved.value += 1
    }
  }
}
