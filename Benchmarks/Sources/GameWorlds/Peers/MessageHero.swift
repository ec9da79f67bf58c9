import Foundation
import SwiftProtobuf

/// One hero as a message of swift-protobuf.
struct MessageHero: Sendable {
  private let message: ProtoHero

  init(_ hero: Hero, target: Int = -1) { message = Self.message(hero, target: target) }

  private init(message: ProtoHero) { self.message = message }

  static func message(_ hero: Hero, target: Int) -> ProtoHero {
    .with {
      $0.type = Int64(hero.type)
      $0.name = hero.name
      $0.x = hero.position.x
      $0.y = hero.position.y
      $0.health = Int64(hero.health)
      $0.inventory = hero.inventory.map { item in
        .with {
          $0.kind = item.kind
          $0.count = Int64(item.count)
          $0.durability = item.durability
        }
      }
      if target >= 0 { $0.target = Int32(target) }
    }
  }

  func encode() throws -> Data { try message.serializedBytes() }

  static func decode(_ data: Data) throws -> MessageHero { MessageHero(message: try ProtoHero(serializedBytes: data)) }

  static func hero(_ message: ProtoHero) -> Hero {
    Hero(
      type: Int(message.type), name: message.name, position: SIMD2(message.x, message.y), health: Int(message.health),
      inventory: message.inventory.map { Item(kind: $0.kind, count: Int($0.count), durability: $0.durability) })
  }

  var hero: Hero { Self.hero(message) }
}
