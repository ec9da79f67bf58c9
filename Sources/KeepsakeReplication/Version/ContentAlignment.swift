/// Finds, for each content of a version, the content of an earlier version that it probably came from: what a delta is made against.
///
/// A large save is cut where its bytes say so, hence most of its contents are the earlier ones. Those that are new stand between known
/// ones, and so did what they came from. How they lie within such a gap is told by their lengths: a cut that stands as far from the gap's
/// beginning as one did before, give or take what was put in on the way, is the same cut.
package struct ContentAlignment {
  /// One content of a version.
  package struct Part: Hashable, Sendable {
    package var hash: ContentHash
    /// Of the plain bytes.
    package var length: Int

    package init(hash: ContentHash, length: Int) {
      (self.hash, self.length) = (hash, length)
    }
  }

  /// New contents side by side, and what stood in their place.
  private struct Gap {
    var new: Range<Int>
    var old: Range<Int>
  }

  private let new: [Part]
  private let old: [Part]
  /// Two cuts no farther apart than this are the same cut, moved by what was put in or taken out before it.
  private let tolerance: Int
  private var gaps: [Gap] = []

  /// Costs time in proportion to both counts, and to the product of those that changed side by side.
  ///
  /// - Parameter tolerance: In bytes; less than the smallest content of a large save.
  package init(of new: [Part], in old: [Part], tolerance: Int = 64 << 10) {
    (self.new, self.old, self.tolerance) = (new, old, tolerance)
    gaps = Self.gaps(new, old)
  }

  /// One base for each new content, nil where there was nothing before. A content that was there is its own base.
  package var bases: [ContentHash?] {
    var bases = new.map { Optional($0.hash) }
    for gap in gaps {
      for (index, place) in zip(gap.new, places(in: gap)) { bases[index] = place.map { old[$0].hash } }
    }
    return bases
  }

  /// New contents side by side that would better be cut otherwise.
  package struct Recut: Hashable, Sendable {
    /// Places in the list of new contents.
    package var range: Range<Int>
    /// The lengths to cut all of them into instead.
    package var lengths: [Int]
  }

  /// Where new contents should be cut as what stood in their place was. A content that goes over what was a cut before is like no single
  /// earlier one; two that were one have to be told apart by nobody.
  ///
  /// No piece is shorter than `minimum`, unless it was already, and none is made longer than `maximum` and `minimum` together.
  package func recuts(minimum: Int, maximum: Int) -> [Recut] {
    gaps.compactMap { gap in
      guard !gap.old.isEmpty else { return nil }
      let cuts = Self.cuts(new[gap.new])
      let end = new[gap.new].reduce(0) { $0 + $1.length }
      var lengths: [Int] = []
      var start = 0
      func cut(_ place: Int) {
        // What is too long for one is cut where its bytes say so.
        for cut in cuts where place - start > maximum && cut - start >= minimum && place - cut >= minimum {
          lengths.append(cut - start)
          start = cut
        }
        lengths.append(place - start)
        start = place
      }
      for former in formerCuts(in: gap) where former - start >= minimum && end - former >= minimum { cut(former) }
      cut(end)
      return lengths == new[gap.new].map(\.length) ? nil : Recut(range: gap.new, lengths: lengths)
    }
  }

  // MARK: Gaps

  /// What lies between the contents that both have, in order.
  private static func gaps(_ new: [Part], _ old: [Part]) -> [Gap] {
    var gaps: [Gap] = []
    var places: [ContentHash: [Int]] = [:]
    // Backwards, so that the first place is the last of the list.
    for (place, part) in old.enumerated().reversed() { places[part.hash, default: []].append(place) }
    var gap = Gap(new: 0..<0, old: 0..<0)
    for (index, part) in new.enumerated() {
      while let place = places[part.hash]?.last, place < gap.old.lowerBound { places[part.hash]?.removeLast() }
      if let place = places[part.hash]?.last {
        gap.old = gap.old.lowerBound..<place
        if !gap.new.isEmpty { gaps.append(gap) }
        gap = Gap(new: (index + 1)..<(index + 1), old: (place + 1)..<(place + 1))
      } else {
        gap.new = gap.new.lowerBound..<(index + 1)
      }
    }
    gap.old = gap.old.lowerBound..<old.count
    if !gap.new.isEmpty { gaps.append(gap) }
    return gaps
  }

  /// The ends of all parts but the last, in bytes from the gap's beginning.
  private static func cuts(_ parts: ArraySlice<Part>) -> [Int] {
    var end = 0
    return parts.dropLast().map { part in
      end += part.length
      return end
    }
  }

  /// Where the cuts of before would be now, in bytes from the gap's beginning: those that are there still, and those that aren't.
  private func formerCuts(in gap: Gap) -> [Int] {
    let cuts = Self.cuts(new[gap.new])
    let former = Self.cuts(old[gap.old])
    let (newEnd, oldEnd) = (new[gap.new].reduce(0) { $0 + $1.length }, old[gap.old].reduce(0) { $0 + $1.length })
    var next = 0
    // How much more was put in before here than taken out.
    var drift = 0
    /// How many of the cuts behind a former one, with the end, would be where there is one, if all moved by `shift` and a little more.
    func agreement(behind index: Int, shift: Int, within tolerance: Int) -> Int {
      (former[(index + 1)...].prefix(Self.lookahead) + [oldEnd]).count { cut in
        (cut == oldEnd ? [newEnd] : cuts).contains { abs($0 - cut - shift) <= tolerance }
      }
    }
    /// Where a cut is that isn't about where it was: moved by much, if that explains more of what follows than that it is gone.
    func moved(_ index: Int) -> Int? {
      var (best, most) = (nil as Int?, max(agreement(behind: index, shift: drift, within: tolerance), 1))
      for candidate in cuts.indices[next...].prefix(Self.lookahead) {
        let agreement = agreement(behind: index, shift: cuts[candidate] - former[index], within: tolerance / 4)
        if agreement > most { (best, most) = (candidate, agreement) }
      }
      return best
    }
    return former.enumerated().map { index, cut in
      func distance(_ candidate: Int) -> Int { abs(cuts[candidate] - cut - drift) }
      let nearest = cuts.indices[next...].prefix(Self.lookahead).min { distance($0) < distance($1) }
      let same = nearest.flatMap { distance($0) <= tolerance ? $0 : nil } ?? moved(index)
      if let same {
        drift = cuts[same] - cut
        next = same + 1
      }
      return cut + drift
    }
  }

  /// So many cuts are looked at where one isn't where it was.
  private static let lookahead = 8

  /// For each new content of a gap, the earlier one that it shares the most bytes of its place with.
  private func places(in gap: Gap) -> [Int?] {
    guard !gap.old.isEmpty else {
      // Something was put in: its neighbour is as good as any.
      let neighbour = old.isEmpty ? nil : min(gap.old.lowerBound, old.count - 1)
      return gap.new.map { _ in neighbour }
    }
    let cuts = formerCuts(in: gap)
    var place = 0
    var start = 0
    return gap.new.map { index in
      let end = start + new[index].length
      while place < cuts.count, cuts[place] <= start { place += 1 }
      var best = place
      var most = 0
      var (candidate, from) = (place, start)
      while from < end {
        let to = candidate < cuts.count ? min(cuts[candidate], end) : end
        if to - from > most { (best, most) = (candidate, to - from) }
        guard candidate < cuts.count else { break }
        (candidate, from) = (candidate + 1, max(from, to))
      }
      start = end
      return gap.old.lowerBound + best
    }
  }
}
