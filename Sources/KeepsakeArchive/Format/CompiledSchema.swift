import Synchronization

/// The description of everything that a root type leads to, made once per process and root type.
///
/// Its bytes stand at the head of the schema of each archive with that root, so that "same schema" is one comparison.
/// Safe to share: nothing in it changes after `init`. Its metatypes are only used by whoever encodes or decodes the
/// same root type, under that type's own isolation.
final class CompiledSchema: @unchecked Sendable {
  let schema: ArchiveSchema
  let root: Int32
  let bytes: [UInt8]
  let problem: ArchiveError?

  private init<V: Archivable>(_ type: V.Type) {
    schema = ArchiveSchema()
    root = schema.node(of: type)
    schema.markDeferred()
    problem = schema.problem
    bytes = schema.encoded(from: 0)
  }

  private static let cache = Mutex<[ObjectIdentifier: CompiledSchema]>([:])

  static func of<V: Archivable>(_ type: V.Type) throws -> CompiledSchema {
    let id = ObjectIdentifier(type)
    // Built outside the lock: describing a type runs the game's code.
    let compiled = cache.withLock { $0[id] } ?? CompiledSchema(type)
    cache.withLock { if $0[id] == nil { $0[id] = compiled } }
    if let problem = compiled.problem { throw problem }
    return compiled
  }
}
