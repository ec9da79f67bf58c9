import Foundation

/// One merge of two object graphs, from its outermost call to its end.
///
/// Objects are queued instead of being merged recursively: so chains as long as memory allows take no stack, cycles
/// end, and an object with several references to it is merged once. A session belongs to one thread and to the calls of
/// one merge on it, none of which suspends.
package final class MergeSession {
  private struct Pair: Hashable {
    var mine: ObjectIdentifier
    var theirs: ObjectIdentifier
  }
  private var met: Set<Pair> = []
  /// Retained until the end, so that no address is reused.
  private var objects: [(AnyObject, AnyObject)] = []
  private var waiting: [() -> Void] = []

  private static let key = "com.keepsake.merge"

  private static var current: MergeSession? {
    get { Thread.current.threadDictionary[key] as? MergeSession }
    set { Thread.current.threadDictionary[key] = newValue }
  }

  /// Runs a merge. When this returns, every object that it reached has been merged.
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
    guard object !== other, met.insert(Pair(mine: ObjectIdentifier(object), theirs: ObjectIdentifier(other))).inserted
    else { return }
    objects.append((object, other))
    waiting.append(merge)
  }

  /// Terminates, because each pair is added only once.
  private func finish() {
    var next = 0
    while next < waiting.count {
      waiting[next]()
      next += 1
    }
  }
}

extension MergeFields {
  /// Merges the fields of an object, once for each pair of objects. Called by generated code.
  ///
  /// - Parameters:
  ///   - object: This side's object.
  ///   - other: The other side's object. Nothing is merged if it is the same.
  ///   - merge: Merges the fields. Called before the outermost merge returns.
  public static func object<T: AnyObject>(_ object: T, _ other: T, _ merge: @escaping () -> Void) {
    MergeSession.add(object, other, merge)
  }
}
