/// What is known, while one archive is read, about which of its types are the program's, and how much was spent on finding out.
final class ComparedTypes {
  struct Pair: Hashable {
    let file: Int32
    let program: Int32
  }

  private var answers: [Pair: Bool] = [:]
  private(set) var spent = 0

  func answer(_ pair: Pair) -> Bool? { answers[pair] }

  func note(_ pair: Pair, isSame: Bool) { answers[pair] = isSame }

  /// Whether one more pair may be compared. Honest archives need a few for each pair of types; altered ones can have every case of an enum
  /// lead to a description as long as the archive, which differs at its very end.
  func spend() -> Bool {
    spent += 1
    return spent <= ArchiveLimits.comparisons
  }
}
