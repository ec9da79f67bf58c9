import Foundation
import KeepsakeArchive
import KeepsakeInspection
import TestSupport
import Testing

@testable import ArchiveWorlds

/// Has a field of each kind that the reader handles separately, and is small enough to try every value of every byte.
@Archivable private final class Ship {
  var name: String
  var cargo: [Item] = []
  var next: Ship?
  weak var leader: Ship?
  var marks: Set<Int8> = []
  var speeds: [Int16] = []
  let flag: Rank
  init(name: String, flag: Rank) {
    self.name = name
    self.flag = flag
  }
}

@Archivable private struct Fleet {
  var ships: [Ship] = []
  var event = Event.idle
  var byName: [String: Ship?] = [:]
  var home: SIMD2<Float>?
  var log: Data?
}

/// The same types in a later version of the program.
private enum Later {
  @Archivable(name: "Ship") final class Ship {
    var speeds: [Int] = []
    var next: Ship?
    var name: String?
    var cargo: [Old.Empty] = []
    var marks: Set<Int> = []
    weak var leader: Ship?
  }
  @Archivable struct Fleet {
    var home: SIMD2<Double>?
    var byName: [String: Ship] = [:]
    var ships: [Ship?] = []
    var added = 1
  }
}

/// Damage to a save by a disk, a network or a person must never crash the game.
@Suite struct DamageTests {
  private static func fleet() throws -> Data {
    let (first, second) = (Ship(name: "a", flag: .low), Ship(name: "é", flag: .high))
    first.cargo = [Item(kind: 1)]
    (first.next, second.next, second.leader) = (second, first, first)
    first.marks = [1, -2]
    second.speeds = [1, 300]
    var fleet = Fleet(ships: [first, second], event: .both(.idle, .said("x", 1)))
    fleet.byName = ["a": first]
    fleet.home = [1, 2]
    fleet.log = Data([1, 2, 3])
    let bytes = try Archive.encode(fleet)
    first.next = nil
    return bytes
  }

  private static func keyed() throws -> Data {
    try Archive.encode([HandKeyed(text: "a", number: 9), HandKeyed(text: "", number: -1)])
  }

  /// Decodes and encodes again, and then breaks the reference cycles.
  private static func fleetAgain(_ data: Data) throws -> Data {
    let fleet = try Archive.decode(Fleet.self, from: data)
    defer { for ship in fleet.ships { ship.next = nil } }
    return try Archive.encode(fleet)
  }

  private static func keyedAgain(_ data: Data) throws -> Data {
    try Archive.encode(Archive.decode([HandKeyed].self, from: data))
  }

  private static func laterAgain(_ data: Data) throws -> Data {
    let fleet = try Archive.decode(Later.Fleet.self, from: data)
    defer { for ship in fleet.ships { ship?.next = nil } }
    return try Archive.encode(fleet)
  }

  private static func tree(_ data: Data) throws -> Data { Data(try ArchiveInspection(of: data).text().utf8) }

  private struct Reader: Sendable {
    let name: String
    let archive: @Sendable () throws -> Data
    let read: @Sendable (Data) throws -> Data
  }

  private static let readers = [
    Reader(name: "unchanged", archive: fleet, read: fleetAgain),
    Reader(name: "changed", archive: fleet, read: laterAgain),
    Reader(name: "tree", archive: fleet, read: tree), Reader(name: "by hand", archive: keyed, read: keyedAgain),
    Reader(name: "tree of by hand", archive: keyed, read: tree),
  ]

  @Test func everyValueOfEveryByteAndEveryCutIsAnErrorOrTheSameSave() throws {
    for reader in Self.readers {
      let good = try reader.archive()
      let expected = try reader.read(good)
      func check(_ bad: Data, _ place: String) {
        do {
          let value = try reader.read(bad)
          #expect(value == expected, "\(reader.name), \(place)")
        } catch {
          #expect(error is ArchiveError, "\(reader.name), \(place): \(error)")
        }
      }
      for index in good.indices {
        var bad = good
        for step in 1...255 as ClosedRange<UInt8> {
          bad[index] = good[index] &+ step
          check(bad, "byte \(index) plus \(step)")
        }
        check(good.prefix(index), "cut at \(index)")
        check(good.suffix(good.count - index - 1), "without the first \(index + 1)")
      }
      check(good + [0], "a byte more")
    }
  }

  /// Recomputes the checksum after each change, so that the code behind the check is reached: reading throws an
  /// `ArchiveError` or returns a value that can be encoded.
  @Test func everyValueOfEveryByteBehindTheChecksumIsAnErrorOrAValue() throws {
    for reader in Self.readers {
      let good = try reader.archive()
      var (read, refused) = (0, 0)
      for index in 8..<good.count - 8 {
        var bad = good
        for step in Self.steps {
          bad[index] = good[index] &+ step
          do {
            _ = try reader.read(Archive.resealed(bad))
            read += 1
          } catch {
            #expect(error is ArchiveError, "\(reader.name), byte \(index) plus \(step): \(error)")
            refused += 1
          }
        }
      }
      #expect(read > 100 && refused > 100, "\(reader.name)")
    }
  }

  /// All values if `TestDepth.everyByteValue` is set; otherwise those that change one bit, and a few more.
  private static let steps: [UInt8] =
    TestDepth.everyByteValue ? Array(1...255) : [1, 2, 3, 4, 5, 8, 16, 31, 32, 64, 100, 128, 192, 254, 255]

  @Test func bytesPutInAndTakenOutBehindTheChecksumAreAnErrorOrAValue() throws {
    for (number, reader) in Self.readers.enumerated() {
      let good = try reader.archive()
      var random = Seeded(UInt64(number))
      for index in 16..<good.count - 16 {
        var bad = good
        if index % 2 == 0 { bad.remove(at: index) } else { bad.insert(.random(in: 0...255, using: &random), at: index) }
        if index % 3 == 0 {
          bad[.random(in: 16..<bad.count - 16, using: &random)] = .random(in: 0...255, using: &random)
        }
        do { _ = try reader.read(Archive.resealed(bad)) } catch {
          #expect(error is ArchiveError, "\(reader.name), seed \(number), byte \(index): \(error)")
        }
      }
    }
  }

  /// Reads each input with which fuzzing crashed a reader, with every reader.
  @Test func everyInputFoundByFuzzingIsAnErrorOrAValue() throws {
    let folder = Repository.root.appending(path: "Tests/KeepsakeArchiveTests/Fixtures/crashers")
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    #expect(!files.isEmpty)
    for file in files {
      let data = try Data(contentsOf: file)
      for bytes in [data, Archive.resealed(data)] {
        for reader in Self.readers {
          do { _ = try reader.read(bytes) } catch {
            #expect(error is ArchiveError, "\(file.lastPathComponent), \(reader.name): \(error)")
          }
        }
      }
    }
  }
}
