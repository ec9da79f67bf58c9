extension Game {
  /// The current map, one character per square.
  var picture: String {
    var rows = (0..<level.height).map { y in
      (0..<level.width).map { x -> Swift.Character in level.isOpen(Place(x: x, y: y)) ? " " : "#" }
    }
    func draw(_ glyph: Swift.Character, at place: Place) {
      if level.isOpen(place) { rows[place.y][place.x] = glyph }
    }
    for particle in particles { draw("'", at: particle.place) }
    for flame in flames { draw("*", at: flame.place) }
    for character in characters { draw(character.type.glyph, at: character.place) }
    let dead = characters.count - soldiers.count
    let line =
      """
      tick \(tick): \(soldiers.count) soldiers @, \(dead) dead z Z, \(flames.count) flames *, \(kills) burnt, \
      \(eventsLeft) waves to come
      """
    return (rows.map { String($0) } + [line]).joined(separator: "\n")
  }
}
