import Foundation

/// Looks for merge rules in the types of a type's fields.
///
/// Types lead to each other in circles: each is asked once in a search, which belongs to one thread.
private final class RuleSearch {
  var asked: Set<ObjectIdentifier> = []

  static let key = "com.keepsake.merge-rules"
}

extension MergeFields {
  /// Whether values of the type merge by rules of their own.
  static func hasRules<T: Archivable>(_ type: T.Type) -> Bool {
    let thread = Thread.current.threadDictionary
    if let search = thread[RuleSearch.key] as? RuleSearch {
      // A type that was asked before has none, or the search would have ended there.
      return search.asked.insert(ObjectIdentifier(type)).inserted && T.archiveHasMergeRules
    }
    let search = RuleSearch()
    search.asked.insert(ObjectIdentifier(type))
    thread[RuleSearch.key] = search
    defer { thread[RuleSearch.key] = nil }
    return T.archiveHasMergeRules
  }

  /// The same for the type of a property, which isn't looked at. Called by generated code.
  public static func hasRules<Root, T: Archivable>(_ property: (Root) -> T) -> Bool { hasRules(T.self) }
}
