import Foundation

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

  static func of<V: Archivable>(_ type: V.Type) throws -> CompiledSchema {
    let compiled = SchemaCache.shared.schema(for: ObjectIdentifier(type)) { CompiledSchema(type) }
    if let problem = compiled.problem { throw problem }
    return compiled
  }
}

/// The schemas made so far. All access to `schemas` is under `lock`, which is why it may be shared.
private final class SchemaCache: @unchecked Sendable {
  static let shared = SchemaCache()
  private let lock = NSLock()
  private var schemas: [ObjectIdentifier: CompiledSchema] = [:]

  func schema(for id: ObjectIdentifier, make: () -> CompiledSchema) -> CompiledSchema {
    if let known = lock.withLock({ schemas[id] }) { return known }
    // Outside the lock: describing a type runs the game's code.
    let new = make()
    return lock.withLock {
      if let known = schemas[id] { return known }
      schemas[id] = new
      return new
    }
  }
}
