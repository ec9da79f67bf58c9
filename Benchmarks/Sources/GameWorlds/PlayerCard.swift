import Keepsake

/// One small value: what a single encode and decode cost when there is hardly anything to do.
@Archivable
struct PlayerCard: Codable, Equatable, Sendable {
  var id: Int
  var name: String
  var score: Double
  var badges: [Int]
  var isOnline: Bool

  static let sample = PlayerCard(id: 5, name: "goblin king", score: 1.5, badges: [1, 2, 3], isOnline: true)
}
