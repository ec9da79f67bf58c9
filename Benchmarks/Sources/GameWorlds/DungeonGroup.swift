import BenchmarkKit
import CPeers
import Foundation
import Keepsake

/// The first world, beside everyone.
public enum DungeonGroup {
  public static let name = "dungeon"
  public static let heroes = 10_000
  public static let byHandInCxx = "by hand, C++"
  public static let byHandInSwift = "by hand, unsafe Swift"

  /// - Parameter remarks: Gets what a reader should know: peers that were left out, and why.
  public static func tasks(protobufLibrary: String?, remarks: inout [String]) throws -> [TimedTask] {
    let dungeon = Dungeon.sample(heroes: heroes)
    var tasks = try foundation(dungeon)
    let archive = try Archive.encode(dungeon)
    tasks += try byHand(dungeon, archive, &remarks)
    if let protobufLibrary {
      if let peer = DungeonInCxx.peer(inLibrary: protobufLibrary),
        let made = DungeonInCxx(dungeon, peer: peer, schema: [])
      {
        tasks += try cxx("protobuf C++", made)
      } else {
        remarks.append("Protocol Buffers' C++ encoder could not be loaded.")
      }
    } else {
      remarks.append("Protocol Buffers' C++ encoder is left out: its compiler or library isn't installed.")
    }
    return tasks
  }

  private static func foundation(_ dungeon: Dungeon) throws -> [TimedTask] {
    let archive = try Archive.encode(dungeon)
    try BenchmarkError.require(try Archive.decode(Dungeon.self, from: archive).equals(dungeon), "The archive lost data")
    try BenchmarkError.require(
      try Archive.decode(ChangedDungeon.self, from: archive).stems(from: dungeon),
      "The archive lost data for a changed type")
    let mirror = CodableDungeon(dungeon)
    let (jsonEncoder, jsonDecoder) = (JSONEncoder(), JSONDecoder())
    let json = try jsonEncoder.encode(mirror)
    try BenchmarkError.require(
      try jsonDecoder.decode(CodableDungeon.self, from: json).dungeon.equals(dungeon), "JSON lost data")
    let (listEncoder, listDecoder) = (PropertyListEncoder(), PropertyListDecoder())
    listEncoder.outputFormat = .binary
    let list = try listEncoder.encode(mirror)
    try BenchmarkError.require(
      try listDecoder.decode(CodableDungeon.self, from: list).dungeon.equals(dungeon), "The property list lost data")
    let message = MessageDungeon(dungeon)
    let encoded = try message.encode()
    try BenchmarkError.require(try MessageDungeon.decode(encoded).dungeon.equals(dungeon), "swift-protobuf lost data")
    return [
      TimedTask("memcpy", "encode", bytes: archive) { Memory.copy(archive) },
      TimedTask("Keepsake", "encode", bytes: archive) { try Archive.encode(dungeon) },
      TimedTask("swift-protobuf", "encode", bytes: encoded) { try message.encode() },
      TimedTask("JSON", "encode", bytes: json) { try jsonEncoder.encode(mirror) },
      TimedTask("property list", "encode", bytes: list) { try listEncoder.encode(mirror) },
      TimedTask("Keepsake", "decode", bytes: archive) { try Archive.decode(Dungeon.self, from: archive) },
      TimedTask("Keepsake", "decode, changed type", bytes: archive) {
        try Archive.decode(ChangedDungeon.self, from: archive)
      },
      TimedTask("swift-protobuf", "decode", bytes: encoded) { try MessageDungeon.decode(encoded) },
      TimedTask("JSON", "decode", bytes: json) { try jsonDecoder.decode(CodableDungeon.self, from: json) },
      TimedTask("property list", "decode", bytes: list) { try listDecoder.decode(CodableDungeon.self, from: list) },
    ]
  }

  private static func byHand(_ dungeon: Dungeon, _ archive: Data, _ remarks: inout [String]) throws -> [TimedTask] {
    guard let hand = HandWrittenDungeon(like: archive, of: dungeon) else {
      remarks.append("What is written by hand differs from the archive, so it is left out.")
      return []
    }
    try BenchmarkError.require(
      hand.decode(archive)?.equals(dungeon) == true, "What is written by hand in Swift lost data")
    guard let peer = hand_written_peer()?.pointee, let inCxx = DungeonInCxx(dungeon, peer: peer, schema: hand.schema)
    else {
      throw BenchmarkError(message: "What is written by hand in C++ is missing")
    }
    try BenchmarkError.require(inCxx.encode() == archive, "What is written by hand in C++ differs from the archive")
    return [
      TimedTask(byHandInSwift, "encode", bytes: archive) { hand.encode(dungeon) },
      TimedTask(byHandInSwift, "decode", bytes: archive) { hand.decode(archive) },
    ] + (try cxx(byHandInCxx, inCxx))
  }

  private static func cxx(_ name: String, _ dungeon: DungeonInCxx) throws -> [TimedTask] {
    let bytes = dungeon.encode()
    guard let decoded = dungeon.decode(bytes), decoded.equals(dungeon) else {
      throw BenchmarkError(message: "\(name) lost data")
    }
    return [
      TimedTask(name, "encode", bytes: bytes) { dungeon.encode() },
      TimedTask(name, "decode", bytes: bytes) { dungeon.decode(bytes) },
    ]
  }
}
