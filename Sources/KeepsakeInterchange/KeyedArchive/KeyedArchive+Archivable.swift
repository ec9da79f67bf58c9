public import Foundation
public import KeepsakeArchive

extension KeyedArchive {
  /// Decodes an object into an `@Archivable` type: with cycles, shared objects and subclasses.
  ///
  ///     @Archivable class Character {                                     // was: @interface Character : NSObject <NSCoding>
  ///       var name: String
  ///       var items: [Item] = []
  ///       weak var target: Character?                                     // a cycle closes here
  ///     }
  ///     let hero = try KeyedArchive.decode(
  ///       Character.self, from: bytes, classes: ["Character": Character.self, "Item": Item.self],
  ///       keys: ["Character": ["name": "_name", "items": "_items"]])
  ///
  /// A property is looked for under its key: its name, or what `@Key` says. Where the old program used another, `keys` says which; saves that are made from then on have the
  /// property's own. One that the archive lacks, or has as nil, gets its default value. Enums are read from the integers or texts that are their cases' raw values or names, or, as a case with a payload, from
  /// a dictionary that has just the case. Objects become one object for all references to them if their type is a class; a circle has to lead through an
  /// optional variable, as in every archive. A class of the archive may become a struct. `didDecode(context:)` is called as for an archive; `migrate` is not.
  ///
  /// - Parameters:
  ///   - key: Of the value at the top.
  ///   - classes: What may be made, by the names of classes in the archive. Of an object the first of its class and those above it counts. No other type is ever
  ///     made of an object: one whose class isn't named is an error, unless nobody asks for it.
  ///   - keys: By class in the archive: for a property's key the one that the archive has. Also counts for the classes below.
  ///   - context: Handed to `didDecode(context:)`.
  /// - Throws: `PropertyListError`: `unknownClass`, `missingValue` and `mismatch` with the path; `cycle` for objects that need each other to be made; `unsupported` for a type that is
  ///   archived by hand, or `@Coded`; what the bytes are wrong about; and what the types' own initialisers and hooks throw.
  public static func decode<Value: Archivable>(
    _ type: Value.Type, from data: Data, key: String = "root", classes: [String: any Archivable.Type] = [:],
    keys: [String: [String: String]] = [:], context: Any? = nil, limits: PropertyListLimits = .standard
  ) throws -> Value {
    try KeyedArchive(data, limits: limits)
      .decode(type, key: key, classes: classes, keys: keys, context: context, limits: limits)
  }

  /// The same of an archive that was read already.
  public func decode<Value: Archivable>(
    _ type: Value.Type, key: String = "root", classes: [String: any Archivable.Type] = [:], keys: [String: [String: String]] = [:],
    context: Any? = nil, limits: PropertyListLimits = .standard
  ) throws -> Value {
    let source = KeyedTranslation(self, classes, KeyedNames(keys), limits)
    // Sorted, so that the same archive is described in the same way each time.
    let types = classes.sorted { $0.key < $1.key }.map(\.value)
    do {
      // Numbers, texts and their collections are the same for both, and are made without a detour.
      if try !Archive.leadsToTypes(type), let type = type as? any Decodable.Type { return try plain(type, key, limits) }
      return try Archive.translate(
        type, from: source, root: .init(archive: 0, value: try value(under: key)), classes: types, context: context, limits: .standard)
    } catch let error as TranslationError {
      throw PropertyListError(error)
    } catch let error as ArchiveError {
      throw PropertyListError(error)
    }
  }

  private func plain<Value: Archivable, Plain: Decodable>(_ type: Plain.Type, _ key: String, _ limits: PropertyListLimits) throws -> Value {
    guard let value = try decode(type, key: key, classes: [String: any Decodable.Type](), limits: limits) as? Value else {
      throw PropertyListError(.mismatch, "There is no \(type) under \"\(key)\"")
    }
    return value
  }

  func value(under key: String) throws -> PropertyList {
    guard let value = top.last(where: { $0.key == key })?.value else {
      let keys = top.prefix(20).map(\.key).joined(separator: ", ")
      throw PropertyListError(.missingValue, "There is nothing under \"\(key)\" at the top of the archive, which has: \(keys)")
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

  /// What an archive's own decoder found: what stands in the property list and doesn't fit, since the archive was made of it a moment ago.
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
