public import KeepsakeArchive

extension PropertyList {
  /// Makes an `@Archivable` value of the program's of this one.
  ///
  ///     let hero = try list["hero"]?.decode(Hero.self)
  ///
  /// Dictionaries become structs, by the properties' keys, and dictionaries; arrays become arrays, sets and vectors; whole numbers fit wherever nothing is lost. A property that
  /// has nothing under its key gets its default value. Data that holds a keyed archive is decoded where the type is no data, as long as it has no objects of classes of its own:
  /// `KeyedArchive` takes those.
  /// - Throws: `PropertyListError` with the path: `missingValue`, `mismatch`, `limit`, `unsupported`; and what the type's own initialisers throw.
  public func decode<Value: Archivable>(_ type: Value.Type, limits: PropertyListLimits = .standard) throws -> Value {
    try KeyedArchive(plain: self).decode(type, limits: limits)
  }

  /// Makes a `Codable` value of the program's of this one, in the same way.
  @_disfavoredOverload
  public func decode<Value: Decodable>(_ type: Value.Type, limits: PropertyListLimits = .standard) throws -> Value {
    try KeyedArchive(plain: self).decode(type, limits: limits)
  }
}

extension KeyedArchive {
  /// A value as if it stood at the top of an archive without objects.
  init(plain value: PropertyList) {
    archiver = ""
    top = [.init(Self.root, value)]
    objects = []
  }
}
