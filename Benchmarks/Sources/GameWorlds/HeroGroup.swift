import BenchmarkKit
import Foundation
import Keepsake

/// One small object with its four items, many calls in a row.
public enum HeroGroup {
  public static let name = "hero"

  public static func tasks() throws -> [TimedTask] {
    let hero = Hero(
      type: 3, name: "Brokk Ironshoe", position: SIMD2(10, 20.5), health: 77,
      inventory: (0..<4).map { Item(kind: Int32($0) * 7, count: 1 + $0 * 60, durability: 0.37) })
    func isEqual(_ other: Hero) -> Bool {
      other.type == hero.type && other.name == hero.name && other.position == hero.position
        && other.health == hero.health
        && other.inventory == hero.inventory && other.target == nil
    }
    let archive = try Archive.encode(hero)
    try BenchmarkError.require(isEqual(try Archive.decode(Hero.self, from: archive)), "The archive lost data")
    let mirror = CodableHero(hero, target: nil)
    let (jsonEncoder, jsonDecoder) = (JSONEncoder(), JSONDecoder())
    let json = try jsonEncoder.encode(mirror)
    try BenchmarkError.require(isEqual(try jsonDecoder.decode(CodableHero.self, from: json).hero), "JSON lost data")
    let (listEncoder, listDecoder) = (PropertyListEncoder(), PropertyListDecoder())
    listEncoder.outputFormat = .binary
    let list = try listEncoder.encode(mirror)
    try BenchmarkError.require(
      isEqual(try listDecoder.decode(CodableHero.self, from: list).hero), "The property list lost data")
    let message = MessageHero(hero)
    let encoded = try message.encode()
    try BenchmarkError.require(isEqual(try MessageHero.decode(encoded).hero), "swift-protobuf lost data")
    let calls = CardGroup.calls
    return [
      TimedTask("Keepsake", "encode", bytes: archive, calls: calls) { try Archive.encode(hero) },
      TimedTask("swift-protobuf", "encode", bytes: encoded, calls: calls) { try message.encode() },
      TimedTask("JSON", "encode", bytes: json, calls: calls) { try jsonEncoder.encode(mirror) },
      TimedTask("property list", "encode", bytes: list, calls: calls) { try listEncoder.encode(mirror) },
      TimedTask("Keepsake", "decode", bytes: archive, calls: calls) { try Archive.decode(Hero.self, from: archive) },
      TimedTask("swift-protobuf", "decode", bytes: encoded, calls: calls) { try MessageHero.decode(encoded) },
      TimedTask("JSON", "decode", bytes: json, calls: calls) { try jsonDecoder.decode(CodableHero.self, from: json) },
      TimedTask("property list", "decode", bytes: list, calls: calls) {
        try listDecoder.decode(CodableHero.self, from: list)
      },
    ]
  }
}
