import Foundation
import SwiftProtobuf

/// The small value as a message of swift-protobuf.
struct MessageCard: Sendable {
  private let message: ProtoPlayerCard

  private init(message: ProtoPlayerCard) { self.message = message }

  init(_ card: PlayerCard) {
    message = .with {
      $0.id = Int64(card.id)
      $0.name = card.name
      $0.score = card.score
      $0.badges = card.badges.map(Int64.init)
      $0.isOnline = card.isOnline
    }
  }

  func encode() throws -> Data { try message.serializedBytes() }

  static func decode(_ data: Data) throws -> MessageCard {
    MessageCard(message: try ProtoPlayerCard(serializedBytes: data))
  }

  var card: PlayerCard {
    PlayerCard(
      id: Int(message.id), name: message.name, score: message.score, badges: message.badges.map(Int.init),
      isOnline: message.isOnline)
  }
}
