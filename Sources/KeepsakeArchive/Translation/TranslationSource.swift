package import Foundation

/// Values that another format holds, of which `Archive.translate` makes values of the program's types.
package protocol TranslationSource: AnyObject {
  /// Where a value stands in the other format.
  associatedtype Location

  /// What stands at a place. The path is for errors.
  func content(of place: Location, at path: @autoclosure () -> [TranslationStep]) throws -> TranslationContent<Location>

  /// What a text or data stands for where neither fits the type: a point that was written as text, a file inside of the file. nil for nothing.
  func unfolded(
    _ content: TranslationContent<Location>, of place: Location, at path: @autoclosure () -> [TranslationStep]
  ) throws -> TranslationContent<Location>?

  /// A place's content in a few words, for errors.
  func summary(of place: Location) -> String

  /// So many more values are made; false if there were too many.
  func take(_ count: Int) -> Bool

  /// So many bytes of text or data are written, again if they were written before; false if there were too many.
  func take(bytes: Int) -> Bool
}

/// What stands at a place of another format.
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
  /// In digits; "NaN" for none.
  case decimal(String)
  case list([Location])
  case set([Location])
  case pairs([(key: Location, value: Location)])
  /// Values that have names and an order, as a point's have, and others that only have names.
  case tuple([Field], also: [Field])
  /// Values under texts, of no type.
  case fields([Field])
  case object(TranslationObject<Location>)
}

/// An object whose class the program named.
package struct TranslationObject<Location> {
  /// The same for each reference to it; nil for one that nothing else can lead to.
  package var id: Int?
  /// What it becomes.
  package var type: any Archivable.Type
  package var fields: [TranslationContent<Location>.Field]

  package init(id: Int?, type: any Archivable.Type, fields: [TranslationContent<Location>.Field]) {
    self.id = id
    self.type = type
    self.fields = fields
  }
}

/// One step of the way from the root to a value.
package enum TranslationStep: Sendable, Equatable {
  case key(String)
  case index(Int)
}

/// Why a value of another format doesn't become one of the program's type.
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
  /// Whether a type leads to one that the program declares: a struct, an enum or a class. Others are numbers, texts, collections of them and the like.
  package static func leadsToTypes<V: Archivable>(_ type: V.Type) throws -> Bool { try !CompiledSchema.of(V.self).schema.types.isEmpty }

  /// Makes a value of the program's type, with every object that it leads to, of what another format holds.
  ///
  /// The values are written as an archive, in the layout that the types have in the program, and decoded from that: defaults, fallbacks, the order in which objects are
  /// built, cycles and hooks are the archive's own.
  /// - Throws: `TranslationError` with the path, what `source` throws, and what the types' own initialisers and hooks throw.
  package static func translate<V: Archivable, Source: TranslationSource>(
    _ type: V.Type, from source: Source, root: Source.Location, classes: [any Archivable.Type], context: Any?, limits: ArchiveLimits
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
