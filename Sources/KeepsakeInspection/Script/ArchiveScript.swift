package import Foundation
package import KeepsakeArchive

/// The contents of an archive in a form from which the same bytes can be written again: with the saved descriptions of
/// its types, its objects in their order, and marks on values that look alike in an `ArchiveInspection`.
///
///     let script = try ArchiveScript(of: bytes)
///     let again = try script.encoded()                    // equal bytes, for all that `Archive.encode` wrote
///
/// `keepsake convert` writes scripts as JSON and property lists. If the values of a script are edited, it is encoded as
/// an archive with the edited values.
package struct ArchiveScript: Sendable {
  /// A type expression, as described in docs/FORMAT.md, "Schema".
  package indirect enum Expression: Sendable, Equatable {
    /// A scalar type, by the name of its code: `int32`, `string`.
    case scalar(String)
    case optional(Expression)
    case array(Expression)
    case set(Expression)
    case dictionary(Expression, Expression)
    /// The name of the scalar type and the number of scalars.
    case vector(String, Int)
    /// An index into `types`.
    case named(Int)
    /// A scalar type of a later version, by its code.
    case later(Int)
  }

  package struct Field: Sendable, Equatable {
    package var key: String
    package var type: Expression
    /// Whether the field belongs to the references section.
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

  /// A superclass.
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

    package init(kind: ArchiveInspection.Kind, name: String, version: Int) {
      (self.kind, self.name, self.version) = (kind, name, version)
    }
  }

  package struct Object: Sendable, Equatable {
    package var number: Int
    /// An index into `types`.
    package var type: Int
    package var fields: [ArchiveValue.Field]

    package init(number: Int, type: Int, fields: [ArchiveValue.Field]) {
      (self.number, self.type, self.fields) = (number, type, fields)
    }
  }

  package var types: [TypeDefinition] = []
  /// The number of types that the root leads to by declaration. These come first.
  package var fixedTypes = 0
  package var rootType: Expression = .scalar("bool")
  /// The keys of hand-written values, and the types of the values under them.
  package var keys: [String] = []
  package var keyedTypes: [Expression] = []
  /// The number of objects, including those that had only weak references.
  package var objectCount = 0
  /// The objects, in the order of the file.
  package var objects: [Object] = []
  package var root: ArchiveValue = .none

  package init() {}
}

extension ArchiveScript {
  /// Reads an archive. Throws the same errors as `ArchiveInspection.init(of:)`.
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

  /// Recursive for each level; the schema's reader allows at most 64.
  private static func expression(_ node: Int32, in schema: ArchiveSchema) -> Expression {
    let wire = schema.nodes[Int(node)]
    return switch wire.code {
    case .optional: .optional(expression(wire.first, in: schema))
    case .array: .array(expression(wire.first, in: schema))
    case .set: .set(expression(wire.first, in: schema))
    case .dictionary: .dictionary(expression(wire.first, in: schema), expression(wire.second, in: schema))
    case .vector:
      .vector(WireCode(rawValue: UInt8(truncatingIfNeeded: wire.first)).map { "\($0)" } ?? "", Int(wire.second))
    case .named: .named(Int(wire.first))
    case .later: .later(Int(wire.first))
    default: .scalar("\(wire.code)")
    }
  }
}
