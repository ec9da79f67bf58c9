/// Translates the keys of an archive's objects to the program's keys.
struct KeyedNames {
  /// By class, the archive's keys by the program's keys.
  private let keys: [String: [String: String]]

  init(_ keys: [String: [String: String]]) { self.keys = keys }

  /// Returns the values of an object. An archiver adds a `$` to keys that begin with one, because it has such keys of
  /// its own.
  func fields(_ name: KeyedArchive.ClassName, _ entries: [PropertyList.Entry]) -> [PropertyList.Entry] {
    var fields = entries.map { $0.key.hasPrefix("$$") ? PropertyList.Entry(String($0.key.dropFirst()), $0.value) : $0 }
    guard !keys.isEmpty else { return fields }
    let byOldKey = PropertyList.index(fields)
    // The class itself comes last and takes precedence: if a key occurs twice, the last value is used.
    for above in (name.ancestry.filter { $0 != name.name }).reversed() + [name.name] {
      guard let renamed = keys[above] else { continue }
      fields += renamed.compactMap { new, old in byOldKey[old].map { PropertyList.Entry(new, $0) } }
    }
    return fields
  }
}
