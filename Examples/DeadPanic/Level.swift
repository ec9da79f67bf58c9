/// A level as its designer wrote it: a map and a list of events. Only its name is saved.
struct Level {
  /// An event of the level: characters arrive at a given tick.
  struct Event {
    var tick: Int
    var arrivals: [(type: CharacterType, at: Place)]
  }

  let name: String
  let width: Int
  let height: Int
  private let walls: Set<Place>
  let soldiers: [Place]
  /// The events in the order in which they happen.
  let events: [Event]

  /// Returns the level with a name; nil if there is none, for example in a save of a newer game.
  static func named(_ name: String) -> Level? {
    switch name {
    case "graveyard":
      Level(name: name, map: graveyard, waves: [(5, 3), (40, 4), (90, 5), (150, 6), (220, 8), (300, 10)])
    case "mall": Level(name: name, map: mall, waves: [(1, 6), (60, 8), (120, 8), (180, 12)])
    default: nil
    }
  }

  static let names = ["graveyard", "mall"]

  func isOpen(_ place: Place) -> Bool {
    (0..<width).contains(place.x) && (0..<height).contains(place.y) && !walls.contains(place)
  }

  private init(name: String, map: String, waves: [(tick: Int, count: Int)]) {
    self.name = name
    let rows = map.split(separator: "\n").map(Array.init)
    height = rows.count
    width = rows.map(\.count).max() ?? 0
    var (walls, soldiers, graves): (Set<Place>, [Place], [Place]) = ([], [], [])
    for (y, row) in rows.enumerated() {
      for (x, character) in row.enumerated() {
        switch character {
        case "#": walls.insert(Place(x: x, y: y))
        case "S": soldiers.append(Place(x: x, y: y))
        case "+": graves.append(Place(x: x, y: y))
        default: break
        }
      }
    }
    (self.walls, self.soldiers) = (walls, soldiers)
    events = waves.map { wave in
      Event(
        tick: wave.tick,
        arrivals: (0..<wave.count).map { number in
          // Every fourth character is a brute.
          (number % 4 == 3 ? .brute : .walker, graves[number % graves.count])
        })
    }
  }

  private static let graveyard = """
    ################################
    #+.....#..............#.......+#
    #......#..............#........#
    #......##.##......##.##........#
    #..........S...................#
    #....###...........S...###.....#
    #....#.+...............+.#.....#
    #....###.......S.......###.....#
    #..............................#
    #......##.##......##.##........#
    #......#..............#........#
    #+.....#..............#.......+#
    ################################
    """

  private static let mall = """
    ########################
    #+........##..........+#
    #..##.....##.....##....#
    #..##............##....#
    #........SS............#
    #..##.....S......##....#
    #..##.....##.....##....#
    #+........##..........+#
    ########################
    """
}
