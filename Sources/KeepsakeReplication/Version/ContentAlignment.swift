/// Finds, for each content of a version, the content of an earlier version that it probably came from, which becomes
/// the base of a delta.
///
/// A large save is cut at positions that its bytes determine, hence most of its contents are unchanged. The new ones
/// lie between known ones, and so did those that they came from. Lengths show how they correspond within such a gap: a
/// cut that is as far from the beginning of the gap as a former one was, plus what was inserted on the way, is the same
/// cut.
package struct ContentAlignment {
  /// One content of a version.
  package struct Part: Hashable, Sendable {
    package var hash: ContentHash
    /// The number of plain bytes.
    package var length: Int

    package init(hash: ContentHash, length: Int) {
      (self.hash, self.length) = (hash, length)
    }
  }

  /// Consecutive new contents, and what was in their place before.
  private struct Gap {
    var new: Range<Int>
    var old: Range<Int>
  }

  private let new: [Part]
  private let old: [Part]
  /// Cuts no farther apart than this are the same cut, moved by what was inserted or removed before it.
  private let tolerance: Int
  private var gaps: [Gap] = []

  /// Compares two versions. Costs time in proportion to both counts, and to the product of the numbers of consecutive
  /// contents that changed.
  ///
  /// - Parameter tolerance: In bytes; less than the smallest content of a large save.
  package init(of new: [Part], in old: [Part], tolerance: Int = 64 << 10) {
    (self.new, self.old, self.tolerance) = (new, old, tolerance)
    gaps = Self.gaps(new, old)
  }

  /// One base for each new content; nil if the earlier version has no contents. An unchanged content is its own base.
  package var bases: [ContentHash?] {
    var bases = new.map { Optional($0.hash) }
    for gap in gaps {
      for (index, place) in zip(gap.new, places(in: gap)) { bases[index] = place.map { old[$0].hash } }
    }
    return bases
  }

  /// Consecutive new contents that should be cut differently.
  package struct Recut: Hashable, Sendable {
    /// Indices in the list of new contents.
    package var range: Range<Int>
    /// The lengths into which all of them should be cut instead.
    package var lengths: [Int]
  }

  /// Returns where new contents should be cut like those that were in their place. A content that spans a former cut
  /// resembles no single earlier one; and two contents that were one before don't have to be separate.
  ///
  /// No piece is shorter than `minimum`, unless it was already, and none is made longer than `maximum` and `minimum`
  /// together.
  package func recuts(minimum: Int, maximum: Int) -> [Recut] {
    gaps.compactMap { gap in
      guard !gap.old.isEmpty else { return nil }
      let cuts = Self.cuts(new[gap.new])
      let end = new[gap.new].reduce(0) { $0 + $1.length }
      var lengths: [Int] = []
      var start = 0
      func cut(_ place: Int) {
        // What is too long for one content is cut where its bytes determine it.
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

  /// Returns what lies between the contents that both versions have, in order.
  private static func gaps(_ new: [Part], _ old: [Part]) -> [Gap] {
    var gaps: [Gap] = []
    var places: [ContentHash: [Int]] = [:]
    // Backwards, so that the first index is the last one in the list.
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

  /// Returns the ends of all parts but the last, in bytes from the beginning of the gap.
  private static func cuts(_ parts: ArraySlice<Part>) -> [Int] {
    var end = 0
    return parts.dropLast().map { part in
      end += part.length
      return end
    }
  }

  /// Returns where the former cuts would be in the new version, in bytes from the beginning of the gap: those that
  /// still exist, and those that don't.
  private func formerCuts(in gap: Gap) -> [Int] {
    let cuts = Self.cuts(new[gap.new])
    let former = Self.cuts(old[gap.old])
    let (newEnd, oldEnd) = (new[gap.new].reduce(0) { $0 + $1.length }, old[gap.old].reduce(0) { $0 + $1.length })
    var next = 0
    // How many more bytes were inserted before this position than removed.
    var drift = 0
    /// How many of the cuts after a former one, including the end, would coincide with a new one if all moved by
    /// `shift`, give or take `tolerance`.
    func agreement(behind index: Int, shift: Int, within tolerance: Int) -> Int {
      (former[(index + 1)...].prefix(Self.lookahead) + [oldEnd]).count { cut in
        (cut == oldEnd ? [newEnd] : cuts).contains { abs($0 - cut - shift) <= tolerance }
      }
    }
    /// Where a cut is that isn't near its former position: it moved far, if that explains more of what follows than its
    /// removal does.
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

  /// How many cuts are searched for one that isn't where it was.
  private static let lookahead = 8

  /// Returns for each new content of a gap the earlier one that it overlaps most.
  private func places(in gap: Gap) -> [Int?] {
    guard !gap.old.isEmpty else {
      // Something was inserted: its neighbour is as good a base as any.
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
