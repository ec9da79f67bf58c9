import Foundation
import KeepsakeArchive

/// The types into which an archive can be decoded here. Which one is meant stands in the byte of the header that
/// readers ignore, so that an input stays an archive and keeps its root however it is altered.
struct Root: Sendable {
  /// Where the number stands: in the four bytes of the header that are reserved.
  static let numberOffset = 12
  /// Small, so that reaching them is found soon and one input stays quick.
  static let limits = {
    var limits = ArchiveLimits()
    limits.archiveBytes = 1 << 16
    limits.depth = 24
    limits.objects = 256
    limits.stringBytes = 1 << 12
    limits.elements = 1 << 13
    limits.memoryBytes = 1 << 18
    limits.types = 96
    limits.fields = 96
    return limits
  }()

  /// Decodes into the type, and gives what encodes the value again.
  let again: @Sendable (Data) throws -> (() throws -> Data)
  /// Whether a program with these declarations must leave the archive alone.
  let isNewer: @Sendable (Data) throws -> Bool
  /// What an archive with this root has as its fixed types and its root's type.
  let schema: (types: [UInt8], root: [UInt8])

  /// The types that wrote the archives of that number.
  static let own = [
    Root(Pair<World, Everything>.self), Root(Graph.self), Root(Values.self), Root(Kept.self), Root(Wides.self),
    Root(Extras.self),
  ]
  /// Which of them is written by hand in places.
  static let keyedNumber = 3
  /// Which of them changes what it reads: halves are rounded, `Codable` types pass over keys that they don't know.
  static let roundingNumber = 5
  /// The same in another version of the program.
  static let changed = [
    Root(Changed.Saved.self), Root(Changed.Graph.self), Root(Changed.Values.self),
    Root(Changed.Kept.self, classes: Changed.classes), Root(Changed.Wides.self), Root(Changed.Extras.self),
  ]

  init<Value: Archivable>(_ type: Value.Type, classes: [any Archivable.Type] = []) {
    do {
      let compiled = try CompiledSchema.of(type)
      var root: [UInt8] = []
      compiled.schema.appendExpression(compiled.root, to: &root)
      schema = (compiled.bytes, root)
    } catch {
      Target.found("\(type) can't be archived: \(error)")
    }
    isNewer = { try Archive.newerSave(than: type, in: $0, classes: classes, limits: Root.limits) != nil }
    again = { data in
      let value = try Archive.decode(type, from: data, classes: classes, context: "fuzz", limits: Root.limits)
      return { try Archive.encode(value, classes: classes) }
    }
  }

  static func number(of data: Data) -> Int { data.count > numberOffset ? Int(data[data.startIndex + numberOffset]) : 0 }

  static func of(_ data: Data, in roots: [Root]) -> Root { roots[number(of: data) % roots.count] }
}
