import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeReplication

// Saves that are documents: loaded and merged by the same code as a game's documents.
extension World {
  static let garden = Slot<Plot>("garden")

  /// The document that a game holds, and the deeds that the game knows.
  struct Garden {
    var plot: Plot
    var known: Set<Int>
    /// Whether the merge that it came from lacked an ancestor.
    var isUncertain: Bool
    /// Whether that merge, or one that it comes from, had several ancestors.
    var isCrossed: Bool
    /// What it shows although something later was written there: see ``World/isCarriedAlong(_:on:among:of:)``.
    var carriedAlong: Set<Int>
  }

  // MARK: Playing

  func loadGarden(_ index: Int) {
    if isFrugal, isNotDownloaded(Self.garden.name, on: index) { return }
    do {
      let (garden, parents) = try shownGarden(index)
      devices[index].garden = garden
      devices[index].loaded[Self.garden.name] = parents
      trace(
        32, UInt64(index), UInt64(parents.count),
        words: "device \(index) loads the garden: \(parents.map { short($0) })")
    } catch {
      violation("device \(index) can't load the garden: \(error)")
    }
  }

  /// Does a few deeds in the garden that the game holds, and saves it.
  func saveGarden(_ index: Int) {
    if devices[index].garden == nil || random.once(in: 3) { loadGarden(index) }
    guard var garden = devices[index].garden else { return }
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      // The beginning of a garden has a number, too: gardens that never met differ in it.
      let kind = garden.known.isEmpty ? .move : deed(in: garden.plot)
      let number = model.deeds.count
      model.deeds.append(Model.Deed(kind: kind, known: garden.known))
      garden.known.insert(number)
      garden.plot.apply(kind, number: number)
    }
    do {
      let bytes = try Archive.encode(garden.plot, writer: devices[index].writer.value)
      let draft = saveDraft(index, Self.garden.name, tombstone: false, document: bytes)
      model.known[draft.id] = garden.known
      if garden.isUncertain { model.uncertain.insert(draft.id) }
      if garden.isCrossed { model.crossed.insert(draft.id) }
      if !garden.carriedAlong.isEmpty { model.carriedAlong[draft.id] = garden.carriedAlong }
      let opening = devices[index].opening
      commit(index, CommitDraft(saves: [draft]), paired: nil)
      // Changes that aren't in an archive yet stay with the game, unless the game ended with the commit.
      if devices[index].opening == opening { devices[index].garden = garden }
    } catch {
      violation("device \(index) can't save the garden: \(error)")
    }
  }

  private func deed(in plot: Plot) -> Model.Deed.Kind {
    switch Int.random(in: 0..<12, using: &random) {
    case 0..<2: return .water(Int.random(in: 1...3, using: &random))
    case 2: return .grow(Int.random(in: 1...1_000, using: &random))
    case 3: return .bloom(Int.random(in: 1...365, using: &random))
    case 4: return .hang
    case 5..<7: return plot.ornaments.sorted().randomElement(using: &random).map { .takeOff($0) } ?? .hang
    case 7: return .plant
    case 8..<10: return plot.flowers.randomElement(using: &random).map { .pull($0.id) } ?? .plant
    case 10: return .label(["bed", "gate"].randomElement(using: &random) ?? "bed")
    default: return .move
    }
  }

  // MARK: Looking

  /// Returns what a game gets when it loads the garden, checked, and what its next save replaces.
  func shownGarden(_ index: Int) throws -> (garden: Garden, parents: [VersionID]) {
    let storage = devices[index].storage
    let reading = try SlotReading.read(Self.garden.name, policy: .mostProgress, in: storage)
    if let damage = reading.damage.first {
      violation("device \(index) can't read \(short(damage.version)): \(damage.message)")
    }
    var unreadable: [(version: VersionID, error: any Error)] = []
    let view = try ConflictResolver(slot: Self.garden, reading: reading, context: nil) { unreadable.append(($0, $1)) }
      .view()
    if let (version, error) = unreadable.first { violation("device \(index) can't decode \(short(version)): \(error)") }
    let heads = storage.heads(of: Self.garden.name).sorted()
    let sides = reading.sides.map(\.version.record.id)
    let ancestors = try Resolution.mergeAncestors(of: sides, record: storage.sharedRecords())
    let whole = Set(ancestors.all.filter { isWhole($0, in: storage) })
    let isUncertain = heads.contains(where: model.uncertain.contains) || !isCertain(sides, ancestors, whole)
    let isCrossed = ancestors.all.count > 1 || heads.contains(where: model.crossed.contains)
    report.statistics.documents += 1
    if heads.count > 1 { report.statistics.merges += 1 }
    if heads.count > 1, isUncertain { report.statistics.mergesUncertain += 1 }
    if ancestors.common.count > 1, !isUncertain { report.statistics.mergesCrossed += 1 }
    let known = view.parents.reduce(into: Set<Int>()) { $0.formUnion(model.known[$1] ?? []) }
    let plot = view.value ?? Plot()
    var carriedAlong = heads.reduce(into: Set<Int>()) { $0.formUnion(model.carriedAlong[$1] ?? []) }
    try check(plot, knowing: known, isUncertain: isUncertain, isCrossed: isCrossed, on: index) { shown, field in
      if !carriedAlong.contains(shown), try isCarriedAlong(shown, on: field, among: whole, of: index) {
        carriedAlong.insert(shown)
      }
      return carriedAlong.contains(shown)
    }

    let key = Model.MergedHeads(
      heads: heads.compactMap { storage.version($0)?.record }, ancestors: whole,
      known: ancestors.all.compactMap { storage.version($0)?.record })
    let bytes = try Archive.encode(plot)
    let first = model.gardens[key]
    if let first, first != bytes {
      let other = try Archive.decode(Plot.self, from: first)
      violation(
        "device \(index) merges \(heads.map { short($0) }) to another garden than the first device that showed them: "
          + plot.differences(from: other).joined(separator: ", "))
    }
    if first == nil { model.gardens[key] = bytes }
    return (
      Garden(plot: plot, known: known, isUncertain: isUncertain, isCrossed: isCrossed, carriedAlong: carriedAlong),
      view.parents
    )
  }

  private func isWhole(_ id: VersionID, in storage: SimulatedDevice) -> Bool {
    storage.version(id)?.record.contents.allSatisfy(storage.hasContent) == true
  }

  /// Returns the ancestors from which a merge of heads starts, at any depth, as far as the device can read them.
  func wholeAncestors(of heads: [VersionID], in storage: SimulatedDevice) throws -> Set<VersionID> {
    guard heads.count > 1 else { return [] }
    return Set(
      try Resolution.mergeAncestors(of: heads, record: storage.sharedRecords()).all.filter { isWhole($0, in: storage) })
  }

  /// Whether, at each step of the merge, its ancestors contain everything that both sides know, and were made in the
  /// same way: then it is certain what was removed or written on either side.
  private func isCertain(_ sides: [VersionID], _ ancestors: MergeAncestors, _ whole: Set<VersionID>) -> Bool {
    var open = sides.count > 1 ? [sides] : []
    var looked: Set<[VersionID]> = []
    while let merged = open.popLast() {
      guard looked.insert(merged).inserted else { continue }
      var before = model.known[merged[0]] ?? []
      for (index, side) in merged.enumerated().dropFirst() {
        let known = model.known[side] ?? []
        let nearest = ancestors.nearest(of: side, with: Array(merged[..<index]))
        let told = nearest.filter(whole.contains).reduce(into: Set<Int>()) { $0.formUnion(model.known[$1] ?? []) }
        guard told == known.intersection(before), !nearest.contains(where: model.uncertain.contains) else {
          return false
        }
        before.formUnion(known)
        if nearest.count > 1 { open.append(nearest) }
      }
    }
    return true
  }

  private func check(
    _ plot: Plot, knowing known: Set<Int>, isUncertain: Bool, isCrossed: Bool, on index: Int,
    isCarriedAlong: (_ deed: Int, _ field: (Plot) -> Int?) throws -> Bool
  ) rethrows {
    let deeds = known.sorted().map { (number: $0, kind: model.deeds[$0].kind) }
    func violated(_ text: String) { violation("in the garden of device \(index) \(text)") }
    if plot.deeds != known {
      violated(
        "\(known.subtracting(plot.deeds).sorted()) is lost, \(plot.deeds.subtracting(known).sorted()) was never done")
    }
    if Set(plot.notes) != known { violated("the notes are for \(plot.notes), not for \(known.sorted())") }
    var (waterings, height, bloom) = (0, 0, Int?.none)
    var (hung, takenOff, planted, pulled): (Set<Int>, Set<Int>, Set<Int>, Set<Int>) = ([], [], [], [])
    var written: [String: [Int]] = [:]
    for deed in deeds {
      switch deed.kind {
      case .water(let times): waterings += times
      case .grow(let tall): height = max(height, tall)
      case .bloom(let day): bloom = min(bloom ?? day, day)
      case .hang: hung.insert(deed.number)
      case .takeOff(let ornament): takenOff.insert(ornament)
      case .plant: planted.insert(deed.number)
      case .pull(let flower): pulled.insert(flower)
      case .label(let name): written[name, default: []].append(deed.number)
      case .move: written["", default: []].append(deed.number)
      }
    }
    if plot.waterings.value != waterings {
      violated("\(plot.waterings.value) waterings are counted, but there were \(waterings)")
    }
    if plot.height != height { violated("the height is \(plot.height), not \(height)") }
    if plot.firstBloom != bloom { violated("the first bloom was on \(plot.firstBloom ?? 0), not on \(bloom ?? 0)") }
    guard !isUncertain else { return }
    if plot.ornaments != hung.subtracting(takenOff) {
      violated(
        """
        the ornaments are \(plot.ornaments.sorted()), but \(hung.sorted()) were hung and \(takenOff.sorted()) taken off
        """)
    }
    let flowers = plot.flowers.map(\.id)
    if Set(flowers) != planted.subtracting(pulled) || Set(flowers).count != flowers.count {
      violated("the flowers are \(flowers), but \(planted.sorted()) were planted and \(pulled.sorted()) pulled")
    }
    for name in Set(written.keys).union(plot.labels.keys).sorted() {
      let all = written[name, default: []]
      // A value is gone if it was replaced by a later one whose game had seen it; any other may be shown.
      let standing = all.filter { number in !all.contains { model.deeds[$0].known.contains(number) } }
      let field = { (plot: Plot) in name.isEmpty ? plot.place : plot.labels[name] }
      let shown = field(plot)
      if !standing.contains(shown ?? 0), !(isCrossed && isDisputed(shown ?? 0, among: all)) {
        if try isCarriedAlong(shown ?? 0, field) { continue }
        violated(
          "\(name.isEmpty ? "its place" : "the label \(name)") shows \(shown ?? 0), but should show one of \(standing)")
      }
    }
  }

  /// Whether something else was written at the same time. Merges that each include the other may choose differently,
  /// and what one chose then counts for the other as a change, like anything written since.
  private func isDisputed(_ deed: Int, among all: [Int]) -> Bool {
    all.contains(deed)
      && all.contains { $0 != deed && !model.deeds[$0].known.contains(deed) && !model.deeds[deed].known.contains($0) }
  }

  /// Whether the saves from which a merge starts contain this value, and two values that were written at the same time.
  ///
  /// Which of the values is shown is decided again when the ancestors are merged into one, and may differ from the one
  /// in a save that was merged from them before. What was written since is then a change to both sides, and the value
  /// of the better save is shown, even if the other one had seen it.
  private func isCarriedAlong(_ deed: Int, on field: (Plot) -> Int?, among ancestors: Set<VersionID>, of index: Int)
    throws -> Bool
  {
    let storage = devices[index].storage
    let held = try ancestors.sorted().compactMap { id in
      try storage.version(id).flatMap { field(try Archive.decode(Plot.self, from: storage.plainBytes(of: $0.record))) }
    }
    return held.contains(deed) && held.contains { isDisputed($0, among: held) }
  }

  // MARK: History

  /// Prunes a device's history, which must leave it what a merge starts from.
  func prune(_ index: Int) throws {
    guard devices[index].storage.hasHistoryToPrune else { return }
    let before = devices[index].storage
    let letGo = try devices[index].storage.prune()
    report.statistics.pruned += letGo
    guard letGo > 0 else { return }
    for slot in before.slots() {
      let whole = try wholeAncestors(of: before.heads(of: slot), in: before)
      guard !whole.isEmpty else { continue }
      let left = try wholeAncestors(of: devices[index].storage.heads(of: slot), in: devices[index].storage)
      if let lost = whole.subtracting(left).min() {
        violation("device \(index) removed \(short(lost)), the ancestor of the heads of the conflict in \(slot)")
      }
    }
  }
}
