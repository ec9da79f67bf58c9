/// Objects whose references may close a cycle. Decoding goes on millions of times in one process, so every cycle must
/// be cut again, also of graphs that were given up half-way: what may close one notes itself as soon as it is set.
protocol Linked: AnyObject {
  func unlink()
}

enum Registry {
  /// Nobody is kept alive by being noted: whether a weak or unowned reference finds its object must not depend on it.
  private struct Noted {
    weak var object: (any Linked)?
  }

  nonisolated(unsafe) private static var noted: [Noted] = []

  static func note(_ object: any Linked) { noted.append(Noted(object: object)) }

  static func unlinkAll() {
    // Cutting a reference calls its observer, which notes the object once more.
    let all = noted
    for entry in all { entry.object?.unlink() }
    noted.removeAll(keepingCapacity: true)
  }
}
