import Foundation
import KeepsakeArchive

/// A keyed archive as the source of an archive of the program's types.
final class KeyedTranslation: TranslationSource {
  struct Location {
    /// 0 for the outermost archive; others are in its data.
    let archive: Int
    let value: PropertyList
    /// The content of a value that isn't in the file, such as a part of a shape.
    var given: KeyedContent?
  }

  private let classes: [String: any Archivable.Type]
  private let names: KeyedNames
  private let limits: PropertyListLimits
  private let budget: KeyedBudget
  private var archives: [KeyedContents]
  /// The contents of data, by the data's number.
  private var unpacked: [Int: Location] = [:]

  init(
    _ archive: KeyedArchive, _ classes: [String: any Archivable.Type], _ names: KeyedNames, _ limits: PropertyListLimits
  ) {
    self.classes = classes
    self.names = names
    self.limits = limits
    archives = [KeyedContents(archive)]
    budget = KeyedBudget(archive)
  }

  /// Returns an id. Object numbers are far below 32 bits, because each object takes at least a byte of the file.
  private func id(_ archive: Int, _ uid: UInt64) -> Int { archive << 32 | Int(uid) }

  func take(_ count: Int) -> Bool { budget.take(count) }
  func take(bytes: Int) -> Bool { budget.take(bytes: bytes) }

  func summary(of place: Location) -> String {
    // Errors that use this were thrown because of the content, so the content can be read.
    (try? keyed(place))?.summary ?? "something else"
  }

  private func keyed(_ place: Location) throws -> KeyedContent {
    try place.given ?? archives[place.archive].content(of: place.value)
  }

  func content(of place: Location, at path: @autoclosure () -> [TranslationStep]) throws -> TranslationContent<Location>
  {
    func here(_ value: PropertyList) -> Location { Location(archive: place.archive, value: value) }
    let content = try keyed(place)
    guard budget.take(content.count / KeyedBudget.lookedThrough) else {
      throw PropertyListError.tooMany(at: PathText.text(path()))
    }
    switch content {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .integer(let value): return .integer(value)
    case .number(let value): return .number(value)
    case .string(let value): return .string(value)
    case .data(let value): return .data(value)
    case .date(let value): return .date(value)
    case .url(let value): return .url(value)
    case .uuid(let value): return .uuid(value)
    case .decimal(let value): return .decimal(value)
    case .list(let elements): return .list(elements.map(here))
    case .set(let elements): return .set(elements.map(here))
    case .pairs(let keys, let values): return .pairs(zip(keys, values).map { (here($0), here($1)) })
    case .shape(let parts): return .tuple(Self.parts(parts, place.archive), also: [])
    case .forms(let forms):
      if let text = forms.text { return .string(text) }
      if let elements = forms.elements {
        return .list(elements.map { Location(archive: place.archive, value: .null, given: $0) })
      }
      if let fields = forms.fields { return .fields(fields.map { ($0.key, here($0.value)) }) }
      return .tuple(Self.parts(forms.parts, place.archive), also: Self.parts(forms.otherParts, place.archive))
    case .fields(let entries): return .fields(entries.map { ($0.key, here($0.value)) })
    case .object(let name, let entries):
      guard let type = ([name.name] + name.ancestry).lazy.compactMap({ self.classes[$0] }).first else {
        throw PropertyListError.unnamed(name, at: PathText.text(path()))
      }
      return .object(
        .init(
          id: place.value.uid.map { id(place.archive, $0) }, type: type,
          fields: names.fields(name, entries).map { ($0.key, here($0.value)) }))
    }
  }

  func unfolded(
    _ content: TranslationContent<Location>, of place: Location, at path: @autoclosure () -> [TranslationStep]
  ) throws -> TranslationContent<Location>? {
    switch content {
    case .string(let text):
      guard case .shape(let parts) = KeyedShape.content(text) else { return nil }
      return .tuple(Self.parts(parts, 0), also: [])
    case .data(let data):
      let number = place.value.uid.map { id(place.archive, $0) }
      if let number, let known = unpacked[number] { return try self.content(of: known, at: path()) }
      guard budget.take(bytes: data.count) else { throw PropertyListError.tooMany(at: PathText.text(path())) }
      guard let (archive, value) = try KeyedArchive.nested(in: data, limits) else { return nil }
      if let archive { archives.append(KeyedContents(archive)) }
      let inner = Location(archive: archive == nil ? place.archive : archives.count - 1, value: value)
      if let number { unpacked[number] = inner }
      return try self.content(of: inner, at: path())
    default: return nil
    }
  }

  private static func parts(_ parts: [(name: String, value: KeyedContent)], _ archive: Int) -> [TranslationContent<
    Location
  >.Field] {
    parts.map { ($0.name, Location(archive: archive, value: .null, given: $0.value)) }
  }
}
