import CPeers
import Foundation
import GameWorlds
import Keepsake
import Peers

/// The first world, beside everyone.
struct DungeonGroup {
  static let name = "dungeon"
  static let heroes = 10_000
  static let byHandInCxx = "by hand, C++"
  static let byHandInSwift = "by hand, unsafe Swift"

  static func run(_ runner: inout Runner, protobufLibrary: String?) throws {
    let dungeon = Dungeon.sample(heroes: heroes)
    var tasks = try foundation(dungeon)
    let archive = try Archive.encode(dungeon)
    tasks += try byHand(dungeon, archive, &runner.figures)
    if let protobufLibrary {
      if let peer = DungeonInCxx.peer(inLibrary: protobufLibrary), let made = DungeonInCxx(dungeon, peer: peer, schema: []) {
        tasks += try cxx("protobuf C++", made)
      } else {
        runner.figures.remarks.append("Protocol Buffers' C++ encoder could not be loaded.")
      }
    } else {
      runner.figures.remarks.append("Protocol Buffers' C++ encoder is left out: its compiler or library isn't installed.")
    }
    try runner.measure(name, tasks)
  }

  private static func foundation(_ dungeon: Dungeon) throws -> [Task] {
    let archive = try Archive.encode(dungeon)
    try BenchmarkError.require(try Archive.decode(Dungeon.self, from: archive).equals(dungeon), "The archive lost data")
    try BenchmarkError.require(
      try Archive.decode(ChangedDungeon.self, from: archive).stems(from: dungeon), "The archive lost data for a changed type")
    let mirror = CodableDungeon(dungeon)
    let (jsonEncoder, jsonDecoder) = (JSONEncoder(), JSONDecoder())
    let json = try jsonEncoder.encode(mirror)
    try BenchmarkError.require(try jsonDecoder.decode(CodableDungeon.self, from: json).dungeon.equals(dungeon), "JSON lost data")
    let (listEncoder, listDecoder) = (PropertyListEncoder(), PropertyListDecoder())
    listEncoder.outputFormat = .binary
    let list = try listEncoder.encode(mirror)
    try BenchmarkError.require(
      try listDecoder.decode(CodableDungeon.self, from: list).dungeon.equals(dungeon), "The property list lost data")
    let message = MessageDungeon(dungeon)
    let encoded = try message.encode()
    try BenchmarkError.require(try MessageDungeon.decode(encoded).dungeon.equals(dungeon), "swift-protobuf lost data")
    return [
      Task("memcpy", "encode", bytes: archive) { Memory.copy(archive) },
      Task("Keepsake", "encode", bytes: archive) { try Archive.encode(dungeon) },
      Task("swift-protobuf", "encode", bytes: encoded) { try message.encode() },
      Task("JSON", "encode", bytes: json) { try jsonEncoder.encode(mirror) },
      Task("property list", "encode", bytes: list) { try listEncoder.encode(mirror) },
      Task("Keepsake", "decode", bytes: archive) { try Archive.decode(Dungeon.self, from: archive) },
      Task("Keepsake", "decode, changed type", bytes: archive) { try Archive.decode(ChangedDungeon.self, from: archive) },
      Task("swift-protobuf", "decode", bytes: encoded) { try MessageDungeon.decode(encoded) },
      Task("JSON", "decode", bytes: json) { try jsonDecoder.decode(CodableDungeon.self, from: json) },
      Task("property list", "decode", bytes: list) { try listDecoder.decode(CodableDungeon.self, from: list) },
    ]
  }

  private static func byHand(_ dungeon: Dungeon, _ archive: Data, _ figures: inout Figures) throws -> [Task] {
    guard let hand = HandWrittenDungeon(like: archive, of: dungeon) else {
      figures.remarks.append("What is written by hand differs from the archive, so it is left out.")
      return []
    }
    try BenchmarkError.require(hand.decode(archive)?.equals(dungeon) == true, "What is written by hand in Swift lost data")
    guard let peer = hand_written_peer()?.pointee, let inCxx = DungeonInCxx(dungeon, peer: peer, schema: hand.schema) else {
      throw BenchmarkError(message: "What is written by hand in C++ is missing")
    }
    try BenchmarkError.require(inCxx.encode() == archive, "What is written by hand in C++ differs from the archive")
    return [
      Task(byHandInSwift, "encode", bytes: archive) { hand.encode(dungeon) },
      Task(byHandInSwift, "decode", bytes: archive) { hand.decode(archive) },
    ] + (try cxx(byHandInCxx, inCxx))
  }

  private static func cxx(_ name: String, _ dungeon: DungeonInCxx) throws -> [Task] {
    let bytes = dungeon.encode()
    guard let decoded = dungeon.decode(bytes), decoded.equals(dungeon) else { throw BenchmarkError(message: "\(name) lost data") }
    return [
      Task(name, "encode", bytes: bytes) { dungeon.encode() },
      Task(name, "decode", bytes: bytes) { dungeon.decode(bytes) },
    ]
  }
}
