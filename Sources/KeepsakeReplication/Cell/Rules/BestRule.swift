extension CellRule {
  /// A player's best score on a board. {"best": {"order": "descending", "entry": {...}}}
  package static let best = CellRule(
    "best", rank: 5, payload: { if case .best(let best) = $0 { best } else { nil } }, value: CellValue.best,
    title: { "best, \($0.order.rawValue)" },
    join: { $0.joined(with: $1) },
    size: \.size,
    // It is taken back by means of generations, which only a whole cell has.
    objection: { best, depth in depth == 0 ? best.objection : "a best score can't be inside another value" },
    text: { best, style in
      "best, \(best.order.rawValue)"
        + (best.entry.map { " \(style.scalar($0.score)) (\(style.time($0.dateMilliseconds)))" } ?? ", withdrawn")
    },
    asked: { $0.best.map { "best, \($0.order.rawValue)" } ?? "best" },
    change: { (change, held, application) throws(CellError) in
      guard var best = change.best else {
        throw application.mismatch(held.map(CellValue.best), asked: change.rule.name)
      }
      if let entry = best.entry { best.entry?.score = try application.checked(entry.score) }
      if let held, held.order != best.order {
        throw application.mismatch(.best(held), asked: "best, \(best.order.rawValue)")
      }
      return best
    },
    written: { $0 }, read: { $0 })
}

extension CellDraft.Change {
  fileprivate var best: BestScore? {
    switch self {
    case .best(let best), .withdraw(let best): best
    default: nil
    }
  }
}
