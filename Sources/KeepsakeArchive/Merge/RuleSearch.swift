import Foundation

/// A search for merge rules in the types of a type's fields.
///
/// Types can refer to each other in cycles, so each is visited once per search. A search belongs to one thread.
private final class RuleSearch {
  var asked: Set<ObjectIdentifier> = []

  static let key = "com.keepsake.merge-rules"
}

extension MergeFields {
  /// Returns whether values of the type have merge rules of their own.
  static func hasRules<T: Archivable>(_ type: T.Type) -> Bool {
    let thread = Thread.current.threadDictionary
    if let search = thread[RuleSearch.key] as? RuleSearch {
      // A type that was visited before has none, or the search would have ended there.
      return search.asked.insert(ObjectIdentifier(type)).inserted && T.archiveHasMergeRules
    }
    let search = RuleSearch()
    search.asked.insert(ObjectIdentifier(type))
    thread[RuleSearch.key] = search
    defer { thread[RuleSearch.key] = nil }
    return T.archiveHasMergeRules
  }

  /// Returns whether a property's type has merge rules. Called by generated code.
  ///
  /// - Parameter property: A closure that returns the property. It isn't called.
  /// - Returns: Whether values of the type have merge rules of their own.
  public static func hasRules<Root, T: Archivable>(_ property: (Root) -> T) -> Bool { hasRules(T.self) }
}
