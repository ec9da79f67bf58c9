/// Whether an object of an archive is what its content would be written as.
enum KeyedExactness {
  enum Form {
    /// It is no object, or one that is written the same again.
    case plain
    /// A list, set or dictionary of another class with the same fields, such as a mutable one.
    case collection
    /// Its class has other fields, or isn't written, or isn't known.
    case object
  }

  /// Returns what a value is, with the content that was read of it.
  static func form(of given: PropertyList, _ content: KeyedContent, in archive: KeyedArchive) throws -> Form {
    let object = try given.uid.map { $0 == 0 ? .null : try archive.object($0) } ?? given
    guard case .dictionary(let entries) = object, let name = try archive.className(of: object) else { return .plain }
    // Where others are elements, this is what nil is written as; in a field, nil is no object.
    if case .null = content { return .object }
    // Foundation reads a class that is never written only with its own fields.
    if let known = FoundationClass.named(name.name), known.write == nil { return .object }
    var table = KeyedObjectTable()
    guard given.uid != nil, let again = table.object(for: content), let written = again.dictionary,
      try isSame(entries, written, in: archive, table)
    else { return .object }
    if name.hints.isEmpty, table.ancestry(of: again) == name.ancestry { return .plain }
    switch content {
    case .list, .set, .pairs: return .collection
    default: return .object
    }
  }

  /// Returns whether two objects have the same fields. Of the objects that they refer to, only texts are looked at:
  /// nothing else is written for a content.
  private static func isSame(
    _ old: [PropertyList.Entry], _ new: [PropertyList.Entry], in archive: KeyedArchive, _ table: KeyedObjectTable
  ) throws -> Bool {
    guard old.count == new.count else { return false }
    let byKey = PropertyList.index(new)
    return try old.allSatisfy { entry in
      guard entry.key != "$class" else { return true }
      guard let other = byKey[entry.key] else { return false }
      if case .array = entry.value { return entry.value == other }
      guard let uid = entry.value.uid, let written = other.uid, uid != 0, written != 0 else {
        return entry.value == other
      }
      return try archive.object(uid) == table.object(written)
    }
  }
}
