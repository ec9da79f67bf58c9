import Foundation
import KeepsakeArchive
import Testing

@testable import ArchiveWorlds

// A game saves in one process and loads in another, where no class has been used yet and hash values are different.
#if os(macOS) || os(Linux) || os(Windows) || os(FreeBSD)
@Suite struct ProcessTests {
  private static func temporary(_ name: String) -> URL {
    URL.temporaryDirectory.appending(
      path: "keepsake-process-tests-\(name)-\(ProcessInfo.processInfo.processIdentifier)")
  }

  @Test func aWorldSavedByOneProcessIsLoadedByAnother() async throws {
    let path = Self.temporary("world").path
    // Cleanup only: a leftover file does no harm.
    defer { _ = try? FileManager.default.removeItem(atPath: path) }
    await #expect(processExitsWith: .success) { [path = path as String] in
      try Archive.encode(GoldenWorld.make()).write(to: URL(filePath: path))
    }
    let bytes = try Data(contentsOf: URL(filePath: path))
    #expect(try bytes == Archive.encode(GoldenWorld.make()))
    // The first thing that the fresh process does: subclasses must be found without having been used.
    await #expect(processExitsWith: .success) { [path = path as String] in
      let pair = try Archive.decode(Pair<World, Everything>.self, from: Data(contentsOf: URL(filePath: path)))
      guard pair.first.creatures[1] is Boss, (pair.first.creatures[2] as? Minion)?.master === pair.first.creatures[1],
        pair.second == Everything()
      else { exit(3) }
    }
  }

  @Test func aListOfOneProcessIsReadInAnother() async throws {
    let path = Self.temporary("army").path
    // Cleanup only: a leftover file does no harm.
    defer { _ = try? FileManager.default.removeItem(atPath: path) }
    await #expect(processExitsWith: .success) { [path = path as String] in
      let tank = Old.Tank(gun: 77)
      tank.next = tank
      try Archive.encode(Old.Army(robots: [Old.Robot(), tank]), classes: [Old.Tank.self]).write(to: URL(filePath: path))
    }
    await #expect(processExitsWith: .success) { [path = path as String] in
      let army = try Archive.decode(New.Army.self, from: Data(contentsOf: URL(filePath: path)))
      guard let tank = army.robots[1] as? New.Tank, tank.gun == 77, tank.next === tank else { exit(3) }
    }
  }

  /// Sets and dictionaries are ordered differently in each process; the saved bytes must not depend on that.
  @Test func twoProcessesSaveTheSameWorldAsTheSameBytes() async throws {
    let seed: UInt64 = 2026
    let path = Self.temporary("bytes").path
    // Cleanup only: a leftover file does no harm.
    defer { _ = try? FileManager.default.removeItem(atPath: path) }
    var found: Set<Data> = []
    for _ in 0..<3 {
      await #expect(processExitsWith: .success) { [path = path as String, seed = seed as UInt64] in
        var bytes = Data()
        for step in 0..<20 as Range<UInt64> { bytes += try Archive.encode(RandomWorld.make(seed: seed + step)) }
        try bytes.write(to: URL(filePath: path))
      }
      found.insert(try Data(contentsOf: URL(filePath: path)))
    }
    #expect(found.count == 1, "seed \(seed)")
  }
}
#endif
