package import Foundation

/// A source of values in another format, which `Archive.translate` turns into values of the program's types.
package protocol TranslationSource: AnyObject {
  /// The location of a value in the other format.
  associatedtype Location

  /// Returns the content at a location. The path is used in errors.
  func content(of place: Location, at path: @autoclosure () -> [TranslationStep]) throws -> TranslationContent<Location>

  /// Returns what a text or data value contains if it doesn't fit the type itself: a point that was written as text, or
  /// a file inside the file. nil if there is nothing inside.
  func unfolded(
    _ content: TranslationContent<Location>, of place: Location, at path: @autoclosure () -> [TranslationStep]
  ) throws -> TranslationContent<Location>?

  /// Returns a location's content in a few words, for errors.
  func summary(of place: Location) -> String

  /// Counts `count` more values; false if there are too many.
  func take(_ count: Int) -> Bool

  /// Counts more written bytes of text or data, even if they were written before; false if there are too many.
  func take(bytes: Int) -> Bool
}

/// The content of a location in another format.
package enum TranslationContent<Location> {
  package typealias Field = (key: String, value: Location)

  case null
  case bool(Bool)
  case integer(Int128)
  case number(Double)
  case string(String)
  case data(Data)
  case date(Date)
  case url(String)
  case uuid(UUID)
  /// A decimal number in digits, or "NaN".
  case decimal(String)
  case list([Location])
  case set([Location])
  case pairs([(key: Location, value: Location)])
  /// Values with names and an order, such as those of a point, and others that have only names.
  case tuple([Field], also: [Field])
  /// Untyped values by text keys.
  case fields([Field])
  case object(TranslationObject<Location>)
}

/// An object whose class the program named.
package struct TranslationObject<Location> {
  /// The same for each reference to the object; nil if nothing else can refer to it.
  package var id: Int?
  /// The type that the object becomes.
  package var type: any Archivable.Type
  package var fields: [TranslationContent<Location>.Field]

  package init(id: Int?, type: any Archivable.Type, fields: [TranslationContent<Location>.Field]) {
    self.id = id
    self.type = type
    self.fields = fields
  }
}

/// One step of the path from the root to a value.
package enum TranslationStep: Sendable, Equatable {
  case key(String)
  case index(Int)
}

/// The reason why a value of another format doesn't become a value of the program's type.
package struct TranslationError: Error {
  package enum Code: Sendable {
    case missing, mismatch, cycle, limit, unsupported
  }

  package var code: Code
  package var message: String
  package var path: [TranslationStep]

  package init(_ code: Code, _ message: String, path: [TranslationStep]) {
    self.code = code
    self.message = message
    self.path = path
  }
}

extension Archive {
  /// Returns whether a type leads to one that the program declares: a struct, an enum or a class. Other types are
  /// numbers, texts, collections of them and the like.
  package static func leadsToTypes<V: Archivable>(_ type: V.Type) throws -> Bool {
    try !CompiledSchema.of(V.self).schema.types.isEmpty
  }

  /// Creates a value of the program's type, with every object that it leads to, from values of another format.
  ///
  /// The values are written as an archive, in the layout of the program's types, and decoded from that. So defaults,
  /// fallbacks, the order in which objects are built, cycles and hooks work as in any archive.
  ///
  /// - Throws: `TranslationError` with the path, errors of `source`, and errors of the types' own initialisers and
  ///   hooks.
  package static func translate<V: Archivable, Source: TranslationSource>(
    _ type: V.Type, from source: Source, root: Source.Location, classes: [any Archivable.Type], context: Any?,
    limits: ArchiveLimits
  ) throws -> V {
    var translation = try ArchiveTranslation(type, source, classes: classes, limits: limits)
    let bytes = try translation.archive(root)
    do {
      return try decode(type, from: bytes, classes: classes, context: context, limits: limits)
    } catch let error as ArchiveError {
      throw translation.located(error)
    }
  }
}
