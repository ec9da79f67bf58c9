import Foundation

/// One merge of two object graphs, from its outermost call to its end.
///
/// Objects wait for their turn instead of being merged from within each other: chains as long as memory allows take no stack, cycles end, and an object to
/// which several references lead is merged once. A session belongs to one thread, and to the calls of one merge on it, none of which waits.
package final class MergeSession {
  private struct Pair: Hashable {
    var mine: ObjectIdentifier
    var theirs: ObjectIdentifier
  }
  private var met: Set<Pair> = []
  /// Kept until the end, so that no address is used again.
  private var objects: [(AnyObject, AnyObject)] = []
  private var waiting: [() -> Void] = []

  private static let key = "com.keepsake.merge"

  private static var current: MergeSession? {
    get { Thread.current.threadDictionary[key] as? MergeSession }
    set { Thread.current.threadDictionary[key] = newValue }
  }

  /// Runs a merge; every object that it meets is merged when this returns.
  package static func run(_ merge: () -> Void) {
    guard current == nil else { return merge() }
    let session = MergeSession()
    current = session
    defer { current = nil }
    merge()
    session.finish()
  }

  static func add(_ object: AnyObject, _ other: AnyObject, _ merge: @escaping () -> Void) {
    run { current?.add(object, other, merge) }
  }

  private func add(_ object: AnyObject, _ other: AnyObject, _ merge: @escaping () -> Void) {
    guard object !== other, met.insert(Pair(mine: ObjectIdentifier(object), theirs: ObjectIdentifier(other))).inserted else { return }
    objects.append((object, other))
    waiting.append(merge)
  }

  /// Ends: each pair is added once.
  private func finish() {
    var next = 0
    while next < waiting.count {
      waiting[next]()
      next += 1
    }
  }
}

extension MergeFields {
  /// Merges the fields of an object, each pair of objects once. Called by generated code.
  public static func object<T: AnyObject>(_ object: T, _ other: T, _ merge: @escaping () -> Void) {
    MergeSession.add(object, other, merge)
  }
}
