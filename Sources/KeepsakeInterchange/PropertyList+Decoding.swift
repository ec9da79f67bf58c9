public import KeepsakeArchive

extension PropertyList {
  /// Decodes this property list as an `@Archivable` value.
  ///
  ///     let hero = try list["hero"]?.decode(Hero.self)
  ///
  /// Dictionaries become structs, by the properties' keys, and dictionaries; arrays become arrays, sets and vectors;
  /// integers are accepted wherever nothing is lost. A property without a value under its key gets its default value.
  /// Data that contains a keyed archive is decoded if the type isn't data, as long as the archive has no objects of
  /// custom classes; use `KeyedArchive` for those.
  ///
  /// - Parameters:
  ///   - type: The type to decode.
  ///   - limits: The limits that property lists and archives in its data must keep.
  /// - Returns: The value.
  /// - Throws: `PropertyListError` with the path: `missingValue`, `mismatch`, `limit`, `unsupported`; for an archive in
  ///   its data, the errors of `KeyedArchive.decode`; and errors of the type's own initialisers.
  public func decode<Value: Archivable>(_ type: Value.Type, limits: PropertyListLimits = .standard) throws -> Value {
    try KeyedArchive(plain: self).decode(type, limits: limits)
  }

  /// Decodes this property list as a `Codable` value, in the same way.
  ///
  /// - Parameters:
  ///   - type: The type to decode.
  ///   - limits: The limits that property lists and archives in its data must keep.
  /// - Returns: The value.
  /// - Throws: `PropertyListError` with the path: `missingValue`, `mismatch`, `limit`; for an archive in its data, the
  ///   errors of `KeyedArchive.decode`; and errors of the type's own initialisers.
  @_disfavoredOverload
  public func decode<Value: Decodable>(_ type: Value.Type, limits: PropertyListLimits = .standard) throws -> Value {
    try KeyedArchive(plain: self).decode(type, limits: limits)
  }
}

extension KeyedArchive {
  /// Creates an archive without objects that has the value at the top.
  init(plain value: PropertyList) {
    archiver = ""
    top = [.init(Self.root, value)]
    objects = []
  }
}
