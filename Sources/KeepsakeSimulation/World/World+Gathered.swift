import KeepsakeReplication

// Values of many parts: a set whose elements are removed again, and dictionaries.
extension World {
  static let favourites = progress("favourites")
  /// The names of additions to `favourites`, each committed together with its addition: a device that has the name has
  /// seen the addition. So the checks don't need to know how the set is represented.
  static let heard = progress("heard")
  static let times = progress("times")
  static let met = progress("met")

  /// Only a few, so that devices get in each other's way.
  private static let flowers: ClosedRange<Int64> = 1...4

  func gatheredDrafts(_ index: Int) -> [CellDraft] {
    let name = Scalar.int(Int64.random(in: Self.flowers, using: &random))
    switch Int.random(in: 0..<8, using: &random) {
    case 0..<3:
      let draft = CellDraft(Self.favourites, .insertElements([name]))
      // An element that is in the set isn't inserted again.
      guard !shownFavourites(index).contains(name) else { return [draft] }
      model.additions += 1
      return [draft, CellDraft(Self.heard, .insert([.int(model.additions)]))]
    case 3..<5: return [CellDraft(Self.favourites, .removeElements([name]))]
    case 5: return [CellDraft(Self.times, .entries([name: .min(.int(Int64.random(in: 0...1_000, using: &random)))]))]
    default:
      let (plus, minus) = (UInt64.random(in: 1...9, using: &random), UInt64.random(in: 0...2, using: &random))
      return [CellDraft(Self.met, .entries([name: .add(plus: plus, minus: minus)]))]
    }
  }

  private func shownFavourites(_ index: Int) -> Set<Scalar> {
    guard case .set(let set)? = devices[index].storage.cell(Self.favourites)?.value else { return [] }
    return set.elements
  }

  /// Records what a commit did to the set; `number` is the index of the write in the model.
  func noteFavourite(_ cell: CellDraft, of drafts: [CellDraft], _ index: Int, _ number: Int) {
    guard cell.key == Self.favourites else { return }
    switch cell.change {
    case .insertElements(let elements):
      // Without a name, it was in the set already.
      guard let element = elements.first,
        case .insert(let names)? = drafts.first(where: { $0.key == Self.heard })?.change
      else { return }
      model.favourites.append(Model.Favourite(element: element, addition: names.first, seen: [], write: number))
    case .removeElements(let elements):
      guard let element = elements.first else { return }
      var seen: Set<Scalar> = []
      if case .union(let names)? = devices[index].storage.cell(Self.heard)?.value { seen = names }
      model.favourites.append(Model.Favourite(element: element, addition: nil, seen: seen, write: number))
      report.statistics.takenOut += 1
    default: break
    }
  }

  // MARK: At rest

  func checkGathered() {
    checkFavourites()
    checkTimes()
    checkMet()
  }

  /// An element is in the set if an addition of it was not seen by any device that removed it.
  private func checkFavourites() {
    let held = shownFavourites(0)
    if let stranger = held.first(where: { scalar in !Self.flowers.contains { Scalar.int($0) == scalar } }) {
      violation("the favourites have \(stranger), which was never inserted")
    }
    // A refusal splits a group, visibly: then an addition may be known without its name.
    guard swarm.cloudFillOdds == 0 else { return }
    for number in Self.flowers {
      let element = Scalar.int(number)
      let writes = model.favourites.filter { $0.element == element }
      let removals = writes.filter { $0.addition == nil }
      let mayBeGone = { (favourite: Model.Favourite) in self.model.writes[favourite.write].mayBeGone }
      var isIn = false
      var isOut = true
      for case (let write, let name?) in writes.map({ ($0, $0.addition) }) {
        if !mayBeGone(write), !removals.contains(where: { $0.seen.contains(name) }) {
          isIn = true
          if !removals.isEmpty { report.statistics.additionsKept += 1 }
        }
        if !removals.contains(where: { !mayBeGone($0) && $0.seen.contains(name) }) { isOut = false }
      }
      if isIn, !held.contains(element) {
        violation(
          "\(element) was inserted into the favourites and is missing, but no device that had seen it removed it")
      }
      if isOut, held.contains(element) {
        violation("\(element) was removed from the favourites and is still there, but was not inserted again")
      }
    }
  }

  private func checkTimes() {
    var held: [Scalar: CellValue] = [:]
    if case .dictionary(let entries)? = devices[0].storage.cell(Self.times)?.value { held = entries }
    for (write, mayBeGone) in model.writes where !mayBeGone {
      guard case .cell(Self.times, .entries(let changes)) = write else { continue }
      for case (let name, .min(let time)) in changes {
        if case .min(let best)? = held[name], best <= time { continue }
        violation("\(Self.times) went back behind \(time) at \(name): \(String(describing: held[name]))")
      }
    }
  }

  private func checkMet() {
    var counted: [Scalar: Int64] = [:]
    var mayCount: [Scalar: (plus: Int64, minus: Int64)] = [:]
    for (write, mayBeGone) in model.writes {
      guard case .cell(Self.met, .entries(let changes)) = write else { continue }
      for case (let name, .add(let plus, let minus)) in changes {
        if mayBeGone {
          mayCount[name, default: (0, 0)].plus += Int64(clamping: plus)
          mayCount[name, default: (0, 0)].minus += Int64(clamping: minus)
        } else {
          counted[name, default: 0] += Int64(clamping: plus) - Int64(clamping: minus)
        }
      }
    }
    var held: [Scalar: CellValue] = [:]
    if case .dictionary(let entries)? = devices[0].storage.cell(Self.met)?.value { held = entries }
    for name in Set(counted.keys).union(held.keys).sorted() {
      var total: Int64 = 0
      if case .counter(let entries)? = held[name] { total = CellValue.total(of: entries) }
      let (sum, may) = (counted[name, default: 0], mayCount[name, default: (0, 0)])
      if total < sum - may.minus || total > sum + may.plus {
        violation("\(name) was met \(sum) times (and perhaps +\(may.plus) -\(may.minus)), but the counter is \(total)")
      }
    }
  }
}
