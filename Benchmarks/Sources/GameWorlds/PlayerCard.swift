import Keepsake

/// One small value: what a single encode and decode cost when there is hardly anything to do.
@Archivable
struct PlayerCard: Codable, Equatable, Sendable {
  var id: Int
  var name: String
  var score: Double
  var badges: [Int]
  var isOnline: Bool

  init(id: Int, name: String, score: Double, badges: [Int], isOnline: Bool) {
    self.id = id
    self.name = name
    self.score = score
    self.badges = badges
    self.isOnline = isOnline
  }

  static let sample = PlayerCard(id: 5, name: "goblin king", score: 1.5, badges: [1, 2, 3], isOnline: true)
}
