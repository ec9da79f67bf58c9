/// The keys of an archive's objects under the names that the program has for them.
struct KeyedNames {
  /// By class, and in that by the program's key.
  private let keys: [String: [String: String]]

  init(_ keys: [String: [String: String]]) { self.keys = keys }

  /// The values of an object. An archiver puts a `$` in front of keys that begin with one: it has keys of its own.
  func fields(_ name: KeyedArchive.ClassName, _ entries: [PropertyList.Entry]) -> [PropertyList.Entry] {
    var fields = entries.map { $0.key.hasPrefix("$$") ? PropertyList.Entry(String($0.key.dropFirst()), $0.value) : $0 }
    guard !keys.isEmpty else { return fields }
    let byOldKey = PropertyList.index(fields)
    // The class itself comes last: it has the last word, and of two values under one key the last counts.
    for above in (name.ancestry.filter { $0 != name.name }).reversed() + [name.name] {
      guard let renamed = keys[above] else { continue }
      fields += renamed.compactMap { new, old in byOldKey[old].map { PropertyList.Entry(new, $0) } }
    }
    return fields
  }
}
