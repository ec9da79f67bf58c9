/// Finds, for each content of a version, the content of an earlier version that it probably came from: what a delta is made against.
///
/// A large save is cut where its bytes say so, hence most of its contents are the earlier ones. Those that are new stand between known
/// ones, and so did what they came from.
package enum ContentAlignment {
  /// One base for each of `new`, nil where `old` is empty. A content that `old` has is its own base.
  ///
  /// Costs time in proportion to both counts.
  package static func bases(of new: [ContentHash], in old: [ContentHash]) -> [ContentHash?] {
    guard !old.isEmpty else { return Array(repeating: nil, count: new.count) }
    var places: [ContentHash: [Int]] = [:]
    // Backwards, so that the first place is the last of the list.
    for (place, hash) in old.enumerated().reversed() { places[hash, default: []].append(place) }
    var bases: [ContentHash?] = []
    bases.reserveCapacity(new.count)
    var afterAnchor = 0
    var run = 0..<0
    func close(at anchor: Int) {
      let between = afterAnchor..<anchor
      for (position, index) in run.enumerated() {
        // Where nothing was left out between the known ones, something was put in: its neighbour is as good as any.
        let place = between.isEmpty ? min(afterAnchor, old.count - 1) : between.lowerBound + position * between.count / run.count
        bases[index] = old[place]
      }
    }
    for (index, hash) in new.enumerated() {
      while let place = places[hash]?.last, place < afterAnchor { places[hash]?.removeLast() }
      if let place = places[hash]?.last {
        close(at: place)
        afterAnchor = place + 1
        run = (index + 1)..<(index + 1)
      } else {
        run = run.lowerBound..<(index + 1)
      }
      bases.append(hash)
    }
    close(at: old.count)
    return bases
  }
}
