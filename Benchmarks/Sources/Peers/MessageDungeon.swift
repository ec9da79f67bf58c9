public import Foundation
public import GameWorlds
import SwiftProtobuf

/// The dungeon as a message of swift-protobuf, made before the clock starts; what is decoded stays a message.
public struct MessageDungeon: Sendable {
  private let message: ProtoDungeon

  private init(message: ProtoDungeon) { self.message = message }

  public init(_ dungeon: Dungeon) {
    message = .with {
      $0.level = Int64(dungeon.level)
      $0.name = dungeon.name
      $0.heroes = zip(dungeon.heroes, dungeon.targets).map { hero, target in
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
    }
  }

  public func encode() throws -> Data { try message.serializedBytes() }

  public static func decode(_ data: Data) throws -> MessageDungeon { MessageDungeon(message: try ProtoDungeon(serializedBytes: data)) }

  public var dungeon: Dungeon {
    let all = message.heroes.map { hero in
      Hero(
        type: Int(hero.type), name: hero.name, position: SIMD2(hero.x, hero.y), health: Int(hero.health),
        inventory: hero.inventory.map { Item(kind: $0.kind, count: Int($0.count), durability: $0.durability) })
    }
    for (hero, mirror) in zip(all, message.heroes) where mirror.hasTarget { hero.target = all[Int(mirror.target)] }
    return Dungeon(level: Int(message.level), name: message.name, heroes: all)
  }
}
