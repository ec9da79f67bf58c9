package import Foundation
package import KeepsakeArchive

/// An archive taken apart so that the same bytes can be put together again: with its types as they were described, its objects in their
/// order, and every value told apart that an `ArchiveInspection` shows alike.
///
///     let script = try ArchiveScript(of: bytes)
///     let again = try script.encoded()                    // equal bytes, for all that `Archive.encode` wrote
///
/// What `keepsake convert` spells in JSON and property lists. Whoever changes a script's values gets an archive with the changed ones.
package struct ArchiveScript: Sendable {
  /// A type expression: see docs/FORMAT.md, "Schema".
  package indirect enum Expression: Sendable, Equatable {
    /// By the name of its code: `int32`, `string`.
    case scalar(String)
    case optional(Expression)
    case array(Expression)
    case set(Expression)
    case dictionary(Expression, Expression)
    /// The scalars' name, and how many there are.
    case vector(String, Int)
    /// An index into `types`.
    case named(Int)
    /// A scalar of later programs, by its code.
    case later(Int)
  }

  package struct Field: Sendable, Equatable {
    package var key: String
    package var type: Expression
    /// Stands in the references section.
    package var isDeferred: Bool

    package init(key: String, type: Expression, isDeferred: Bool) {
      (self.key, self.type, self.isDeferred) = (key, type, isDeferred)
    }
  }

  package struct Case: Sendable, Equatable {
    package var key: String
    package var fields: [Field]

    package init(key: String, fields: [Field]) { (self.key, self.fields) = (key, fields) }
  }

  /// A class above another one.
  package struct Level: Sendable, Equatable {
    package var name: String
    package var version: Int

    package init(name: String, version: Int) { (self.name, self.version) = (name, version) }
  }

  package struct TypeDefinition: Sendable, Equatable {
    package var kind: ArchiveInspection.Kind
    package var name: String
    package var version: Int
    package var superclasses: [Level] = []
    package var fields: [Field] = []
    package var cases: [Case] = []

    package init(kind: ArchiveInspection.Kind, name: String, version: Int) { (self.kind, self.name, self.version) = (kind, name, version) }
  }

  package struct Object: Sendable, Equatable {
    package var number: Int
    /// An index into `types`.
    package var type: Int
    package var fields: [ArchiveValue.Field]

    package init(number: Int, type: Int, fields: [ArchiveValue.Field]) { (self.number, self.type, self.fields) = (number, type, fields) }
  }

  package var types: [TypeDefinition] = []
  /// How many of the types the root leads to by declaration: they come first.
  package var fixedTypes = 0
  package var rootType: Expression = .scalar("bool")
  /// Keys of hand-written values, and the types that stand under them.
  package var keys: [String] = []
  package var keyedTypes: [Expression] = []
  /// Numbers of objects, with those that were only referred to weakly.
  package var objectCount = 0
  /// In the order of the file.
  package var objects: [Object] = []
  package var root: ArchiveValue = .none

  package init() {}
}

extension ArchiveScript {
  /// Takes an archive apart. Throws as `ArchiveInspection.init(of:)` does.
  package init(of data: Data, limits: ArchiveLimits = .standard) throws {
    self = try data.withUnsafeBytes { bytes in
      let file = try ArchiveFile(bytes, limits: limits)
      var parser = try ValueParser(file, limits: limits, isExact: true)
      var script = ArchiveScript(describing: file)
      let objects = try parser.objects()
      script.objects = file.runs.flatMap { run in
        run.ids.map { Object(number: Int($0), type: run.type, fields: objects[Int($0)]?.fields ?? []) }
      }
      script.root = try parser.root()
      return script
    }
  }

  private init(describing file: ArchiveFile) {
    let schema = file.schema
    func fields(_ entries: [FieldEntry]) -> [Field] {
      entries.map { Field(key: $0.key, type: Self.expression($0.node, in: schema), isDeferred: $0.deferred) }
    }
    types = schema.types.map { entry in
      var type = TypeDefinition(kind: .init(entry.kind), name: entry.name, version: entry.version)
      type.superclasses = entry.superclasses.map { Level(name: $0.name, version: $0.version) }
      type.fields = fields(entry.fields)
      type.cases = entry.cases.map { Case(key: $0.key, fields: fields($0.fields)) }
      return type
    }
    fixedTypes = file.staticCount
    rootType = Self.expression(file.root, in: schema)
    keys = file.names
    keyedTypes = file.wires.map { Self.expression($0, in: schema) }
    objectCount = file.objectCount
  }

  /// Calls itself for each level, of which the schema's reader has let through 64 at most.
  private static func expression(_ node: Int32, in schema: ArchiveSchema) -> Expression {
    let wire = schema.nodes[Int(node)]
    return switch wire.code {
    case .optional: .optional(expression(wire.first, in: schema))
    case .array: .array(expression(wire.first, in: schema))
    case .set: .set(expression(wire.first, in: schema))
    case .dictionary: .dictionary(expression(wire.first, in: schema), expression(wire.second, in: schema))
    case .vector: .vector(WireCode(rawValue: UInt8(truncatingIfNeeded: wire.first)).map { "\($0)" } ?? "", Int(wire.second))
    case .named: .named(Int(wire.first))
    case .later: .later(Int(wire.first))
    default: .scalar("\(wire.code)")
    }
  }
}
