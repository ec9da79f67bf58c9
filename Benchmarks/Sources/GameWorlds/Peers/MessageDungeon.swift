import Foundation
import SwiftProtobuf

/// The dungeon as a message of swift-protobuf, made before the clock starts; what is decoded stays a message.
struct MessageDungeon: Sendable {
  private let message: ProtoDungeon

  private init(message: ProtoDungeon) { self.message = message }

  init(_ dungeon: Dungeon) {
    message = .with {
      $0.level = Int64(dungeon.level)
      $0.name = dungeon.name
      $0.heroes = zip(dungeon.heroes, dungeon.targets).map { MessageHero.message($0, target: $1) }
    }
  }

  func encode() throws -> Data { try message.serializedBytes() }

  static func decode(_ data: Data) throws -> MessageDungeon {
    MessageDungeon(message: try ProtoDungeon(serializedBytes: data))
  }

  var dungeon: Dungeon {
    let all = message.heroes.map(MessageHero.hero)
    for (hero, mirror) in zip(all, message.heroes) where mirror.hasTarget { hero.target = all[Int(mirror.target)] }
    return Dungeon(level: Int(message.level), name: message.name, heroes: all)
  }
}
