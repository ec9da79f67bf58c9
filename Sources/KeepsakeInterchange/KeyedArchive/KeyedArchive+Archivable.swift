public import Foundation
public import KeepsakeArchive

extension KeyedArchive {
  /// Decodes an object into an `@Archivable` type: with cycles, shared objects and subclasses.
  ///
  ///     @Archivable class Character {                    // was: @interface Character : NSObject <NSCoding>
  ///       var name: String
  ///       var items: [Item] = []
  ///       weak var target: Character?                    // a cycle closes here
  ///     }
  ///     let hero = try KeyedArchive.decode(
  ///       Character.self, from: bytes, classes: ["Character": Character.self, "Item": Item.self],
  ///       keys: ["Character": ["name": "_name", "items": "_items"]])
  ///
  /// A property is read from its key: its name, or the key set with `@Key`. If the old program used another key, pass
  /// it in `keys`; saves written from then on have the property's own key. A property that is missing in the archive,
  /// or is nil there, gets its default value. Enums are read from integers or texts that are their cases' raw values or
  /// names; a case with a payload is read from a dictionary with just the case. If the type of an object is a class,
  /// all references to the object lead to a single decoded object; a cycle must include an optional variable, as in
  /// every archive. A class of the archive may become a struct. `didDecode(context:)` is called as for an archive;
  /// `migrate` is not.
  ///
  /// - Parameters:
  ///   - type: The type to decode.
  ///   - data: The bytes of the archive.
  ///   - key: The key of the value at the top.
  ///   - classes: The types that may be decoded, by the names of classes in the archive. For an object, the entry for
  ///     its class is used, or else that for its nearest superclass with one. Objects are never decoded as any other
  ///     type: an object without such an entry is an error, unless it isn't read.
  ///   - keys: By class in the archive: the archive's key for a property's key. Also applies to subclasses.
  ///   - context: Passed to `didDecode(context:)`.
  ///   - limits: The limits that the archive, and those in its data, must keep.
  /// - Returns: The value.
  /// - Throws: `PropertyListError`: `unknownClass`, `missingValue` and `mismatch` with the path; `cycle` for objects
  ///   that need each other to be built; `unsupported` for a type that is hand-written or `@Coded`; errors in the
  ///   bytes; and errors of the types' own initialisers and hooks.
  public static func decode<Value: Archivable>(
    _ type: Value.Type, from data: Data, key: String = "root", classes: [String: any Archivable.Type] = [:],
    keys: [String: [String: String]] = [:], context: Any? = nil, limits: PropertyListLimits = .standard
  ) throws -> Value {
    try KeyedArchive(data, limits: limits)
      .decode(type, key: key, classes: classes, keys: keys, context: context, limits: limits)
  }

  /// Decodes an object in the same way from an archive that has already been read.
  ///
  /// - Parameters:
  ///   - type: The type to decode.
  ///   - key: The key of the value at the top.
  ///   - classes: The types that may be decoded, by the names of classes in the archive.
  ///   - keys: By class in the archive: the archive's key for a property's key. Also applies to subclasses.
  ///   - context: Passed to `didDecode(context:)`.
  ///   - limits: The limits that archives in its data must keep.
  /// - Returns: The value.
  /// - Throws: As `decode(_:from:key:classes:keys:context:limits:)`, but for the errors of reading the bytes.
  public func decode<Value: Archivable>(
    _ type: Value.Type, key: String = "root", classes: [String: any Archivable.Type] = [:],
    keys: [String: [String: String]] = [:],
    context: Any? = nil, limits: PropertyListLimits = .standard
  ) throws -> Value {
    let source = KeyedTranslation(self, classes, KeyedNames(keys), limits)
    // Sorted, so that the same archive is always described in the same way.
    let types = classes.sorted { $0.key < $1.key }.map(\.value)
    do {
      // Numbers, texts and their collections are the same for both protocols, and are decoded directly.
      if try !Archive.leadsToTypes(type), let type = type as? any Decodable.Type { return try plain(type, key, limits) }
      return try Archive.translate(
        type, from: source, root: .init(archive: 0, value: try value(under: key)), classes: types, context: context,
        limits: .standard)
    } catch let error as TranslationError {
      throw PropertyListError(error)
    } catch let error as ArchiveError {
      throw PropertyListError(error)
    }
  }

  private func plain<Value: Archivable, Plain: Decodable>(
    _ type: Plain.Type, _ key: String, _ limits: PropertyListLimits
  ) throws -> Value {
    guard let value = try decode(type, key: key, classes: [String: any Decodable.Type](), limits: limits) as? Value
    else {
      throw PropertyListError(.mismatch, "There is no \(type) under \"\(key)\"")
    }
    return value
  }

  func value(under key: String) throws -> PropertyList {
    guard let value = top.last(where: { $0.key == key })?.value else {
      let keys = top.prefix(20).map(\.key).joined(separator: ", ")
      throw PropertyListError(
        .missingValue, "There is no value under \"\(key)\" at the top level of the archive, which has: \(keys)")
    }
    return value
  }
}

extension PropertyListError {
  init(_ error: TranslationError) {
    let code: Code =
      switch error.code {
      case .missing: .missingValue
      case .mismatch: .mismatch
      case .cycle: .cycle
      case .limit: .limit
      case .unsupported: .unsupported
      }
    self.init(code, error.message, path: PathText.text(error.path))
  }

  /// Converts an error of the archive's decoder. Because the archive was just created from the property list, the error
  /// is about values in the property list that don't fit.
  init(_ error: ArchiveError) {
    let code: Code =
      switch error.code {
      case .missing, .missingField: .missingValue
      case .limit: .limit
      case .unbuildable: .cycle
      case .unsupported, .unlistedClass, .unknownClass: .unsupported
      case .notAnArchive, .damaged, .tooNew, .unknownCase, .mismatch: .mismatch
      }
    let place = [error.type, error.field].compactMap { $0 }.joined(separator: ".")
    self.init(code, place.isEmpty ? error.message : "\(error.message) (\(place))")
  }
}

extension PathText {
  static func text(_ path: [TranslationStep]) -> String {
    text(
      path.map { step -> Part in
        switch step {
        case .key(let key): .key(key)
        case .index(let index): .index(index)
        }
      })
  }
}
