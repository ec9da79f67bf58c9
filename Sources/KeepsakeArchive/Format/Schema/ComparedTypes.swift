/// The results of comparing an archive's types with the program's, and the number of comparisons, while one archive is
/// read.
final class ComparedTypes {
  struct Pair: Hashable {
    let file: Int32
    let program: Int32
  }

  private var answers: [Pair: Bool] = [:]
  private(set) var spent = 0

  func answer(_ pair: Pair) -> Bool? { answers[pair] }

  func note(_ pair: Pair, isSame: Bool) { answers[pair] = isSame }

  /// Counts a comparison and returns whether it may be made. Valid archives need a few for each pair of types. In an
  /// altered archive, every case of an enum can lead to a description as long as the archive that differs only at its
  /// end.
  func spend() -> Bool {
    spent += 1
    return spent <= ArchiveLimits.comparisons
  }
}
