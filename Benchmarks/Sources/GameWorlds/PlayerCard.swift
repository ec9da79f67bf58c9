public import Keepsake

/// One small value: what a single encode and decode cost when there is hardly anything to do.
@Archivable
public struct PlayerCard: Codable, Equatable, Sendable {
  public var id: Int
  public var name: String
  public var score: Double
  public var badges: [Int]
  public var isOnline: Bool

  public init(id: Int, name: String, score: Double, badges: [Int], isOnline: Bool) {
    self.id = id
    self.name = name
    self.score = score
    self.badges = badges
    self.isOnline = isOnline
  }

  public static let sample = PlayerCard(id: 5, name: "goblin king", score: 1.5, badges: [1, 2, 3], isOnline: true)
}
