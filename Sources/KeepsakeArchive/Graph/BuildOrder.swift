/// Finds an order in which each object comes after the objects that its initialiser needs.
struct BuildOrder {
  /// For each written position, the length of the longest path of required references that starts there.
  let levels: [Int32]
  /// Objects in a cycle of required references, and those that need one of them. Empty if all objects can be built.
  let blocked: Set<Int32>

  /// - Parameters:
  ///   - count: The number of written objects. Each is identified by its position.
  ///   - edges: Pairs of positions: the first object needs the second.
  init(count: Int, edges: [(Int32, Int32)]) {
    var needs = [Int32](repeating: 0, count: count)
    var starts = [Int](repeating: 0, count: count + 1)
    for (from, to) in edges {
      needs[Int(from)] += 1
      starts[Int(to) + 1] += 1
    }
    for index in 0..<count { starts[index + 1] += starts[index] }
    var fill = starts
    var users = [Int32](repeating: 0, count: edges.count)
    for (from, to) in edges {
      users[fill[Int(to)]] = from
      fill[Int(to)] += 1
    }
    var levels = [Int32](repeating: 0, count: count)
    var ready: [Int32] = []
    for index in 0..<count where needs[index] == 0 { ready.append(Int32(index)) }
    var next = 0
    while next < ready.count {
      let done = Int(ready[next])
      next += 1
      for user in users[starts[done]..<starts[done + 1]] {
        levels[Int(user)] = max(levels[Int(user)], levels[done] + 1)
        needs[Int(user)] -= 1
        if needs[Int(user)] == 0 { ready.append(user) }
      }
    }
    self.levels = levels
    blocked = ready.count == count ? [] : Set(needs.indices.filter { needs[$0] > 0 }.map { Int32($0) })
  }
}
