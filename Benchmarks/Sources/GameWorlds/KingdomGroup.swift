import BenchmarkKit
import Foundation
import Keepsake

/// The second world: strings, dictionaries, sets, optionals, payload enums, subclasses, weak references, dates, data.
public enum KingdomGroup {
  public static let name = "kingdom"

  public static func tasks() throws -> [TimedTask] {
    let kingdom = Kingdom.sample()
    let archive = try Archive.encode(kingdom)
    try BenchmarkError.require(try Archive.decode(Kingdom.self, from: archive).equals(kingdom), "The archive lost data")
    let mirror = CodableKingdom(kingdom)
    let (jsonEncoder, jsonDecoder) = (JSONEncoder(), JSONDecoder())
    let json = try jsonEncoder.encode(mirror)
    try BenchmarkError.require(
      try jsonDecoder.decode(CodableKingdom.self, from: json).kingdom.equals(kingdom), "JSON lost data")
    let (listEncoder, listDecoder) = (PropertyListEncoder(), PropertyListDecoder())
    listEncoder.outputFormat = .binary
    let list = try listEncoder.encode(mirror)
    try BenchmarkError.require(
      try listDecoder.decode(CodableKingdom.self, from: list).kingdom.equals(kingdom), "The property list lost data")
    let message = MessageKingdom(kingdom)
    let encoded = try message.encode()
    try BenchmarkError.require(try MessageKingdom.decode(encoded).kingdom.equals(kingdom), "swift-protobuf lost data")
    return [
      TimedTask("memcpy", "encode", bytes: archive) { Memory.copy(archive) },
      TimedTask("Keepsake", "encode", bytes: archive) { try Archive.encode(kingdom) },
      TimedTask("swift-protobuf", "encode", bytes: encoded) { try message.encode() },
      TimedTask("JSON", "encode", bytes: json) { try jsonEncoder.encode(mirror) },
      TimedTask("property list", "encode", bytes: list) { try listEncoder.encode(mirror) },
      TimedTask("Keepsake", "decode", bytes: archive) { try Archive.decode(Kingdom.self, from: archive) },
      TimedTask("swift-protobuf", "decode", bytes: encoded) { try MessageKingdom.decode(encoded) },
      TimedTask("JSON", "decode", bytes: json) { try jsonDecoder.decode(CodableKingdom.self, from: json) },
      TimedTask("property list", "decode", bytes: list) { try listDecoder.decode(CodableKingdom.self, from: list) },
    ]
  }
}
