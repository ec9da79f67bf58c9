import BenchmarkKit
import Foundation
import Keepsake

/// One small value, many calls in a row.
public enum CardGroup {
  public static let name = "card"
  /// So many that the clock's own cost doesn't show.
  static let calls = 1_000

  public static func tasks() throws -> [TimedTask] {
    let card = PlayerCard.sample
    let archive = try Archive.encode(card)
    try BenchmarkError.require(try Archive.decode(PlayerCard.self, from: archive) == card, "The archive lost data")
    let (jsonEncoder, jsonDecoder) = (JSONEncoder(), JSONDecoder())
    let json = try jsonEncoder.encode(card)
    try BenchmarkError.require(try jsonDecoder.decode(PlayerCard.self, from: json) == card, "JSON lost data")
    let (listEncoder, listDecoder) = (PropertyListEncoder(), PropertyListDecoder())
    listEncoder.outputFormat = .binary
    let list = try listEncoder.encode(card)
    try BenchmarkError.require(
      try listDecoder.decode(PlayerCard.self, from: list) == card, "The property list lost data")
    let message = MessageCard(card)
    let encoded = try message.encode()
    try BenchmarkError.require(try MessageCard.decode(encoded).card == card, "swift-protobuf lost data")
    return [
      TimedTask("Keepsake", "encode", bytes: archive, calls: calls) { try Archive.encode(card) },
      TimedTask("swift-protobuf", "encode", bytes: encoded, calls: calls) { try message.encode() },
      TimedTask("JSON", "encode", bytes: json, calls: calls) { try jsonEncoder.encode(card) },
      TimedTask("property list", "encode", bytes: list, calls: calls) { try listEncoder.encode(card) },
      TimedTask("Keepsake", "decode", bytes: archive, calls: calls) {
        try Archive.decode(PlayerCard.self, from: archive)
      },
      TimedTask("swift-protobuf", "decode", bytes: encoded, calls: calls) { try MessageCard.decode(encoded) },
      TimedTask("JSON", "decode", bytes: json, calls: calls) { try jsonDecoder.decode(PlayerCard.self, from: json) },
      TimedTask("property list", "decode", bytes: list, calls: calls) {
        try listDecoder.decode(PlayerCard.self, from: list)
      },
    ]
  }
}
