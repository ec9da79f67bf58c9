package import Foundation

/// Compares the type at the root of an archive with the type that is asked for.
///
/// Inside of a value, types match by their position, so a struct's name doesn't matter there. At the root, the position
/// says nothing: without the name, any struct could be read as any other whose fields all have defaults.
struct RootCheck {
  private enum Difference {
    /// Another name, or a layout that is never read as the one asked for.
    case type
    /// The same name and version, but different fields only.
    case fields(of: String)
  }

  let file: ArchiveSchema
  let program: ArchiveSchema
  /// The former names of the program's types, by their names, where the types themselves may not be used; nil to ask
  /// them.
  var formerNames: [String: [String]]?

  /// Returns the error if the archive's root isn't the program's type, nil if it may be. Values are left to the reader.
  ///
  /// - Parameters:
  ///   - saved: The type of the root in the archive.
  ///   - own: The type of the root in the program.
  func mismatch(_ saved: Int32, _ own: Int32) -> ArchiveError? {
    guard let difference = difference(saved, own) else { return nil }
    let (stored, wanted) = (file.text(saved), program.text(own))
    switch difference {
    case .type:
      let declaration = program.isCodedSave(own) ? "FormerlyNamed" : "@Archivable(name:), or with archiveFormerNames"
      return ArchiveError(
        .mismatch,
        """
        The archive contains \(stored), and \(wanted) was asked for: if that is the same type under a new name, \
        declare its old name with \(declaration)
        """,
        type: wanted)
    case .fields(let name) where file.isCodedSave(saved):
      return ArchiveError(
        .mismatch,
        """
        The archive contains \(stored) from when it was only Codable, and now it is archivable: to read it, \(name) \
        must be Codable, too
        """,
        type: wanted)
    case .fields(let name) where program.isCodedSave(own):
      return ArchiveError(
        .mismatch,
        """
        The archive contains \(stored) as an archivable type, and now it is only Codable: to read it, \(name) must be \
        @Archivable
        """,
        type: wanted)
    case .fields(let name):
      return ArchiveError(
        .mismatch,
        """
        The archive contains \(stored), and \(wanted) was asked for, but the two types called \(name) have no field in \
        common: if its fields were renamed, declare their old names with @Key, or raise the type's version and read \
        the saved values in migrate(_:)
        """,
        type: wanted)
    }
  }

  /// Recursive only along one expression, whose nesting is limited when it is parsed.
  ///
  /// - Parameter mayBeEmpty: Whether the value is inside a list or an optional, which may be empty. If it isn't, the
  ///   reader refuses another layout itself.
  private func difference(_ saved: Int32, _ own: Int32, mayBeEmpty: Bool = false) -> Difference? {
    let (left, right) = (file.nodes[Int(saved)], program.nodes[Int(own)])
    switch (left.code, right.code) {
    case (.optional, .optional), (.array, .array), (.set, .set):
      return difference(left.first, right.first, mayBeEmpty: true)
    case (.dictionary, .dictionary):
      return difference(left.first, right.first, mayBeEmpty: true)
        ?? difference(left.second, right.second, mayBeEmpty: true)
    case (.optional, _): return difference(left.first, own, mayBeEmpty: true)
    case (_, .optional): return difference(saved, right.first, mayBeEmpty: mayBeEmpty)
    case (.named, .named): return difference(file.types[Int(left.first)], program.types[Int(right.first)])
    default:
      let comparison = SchemaComparison(file: file, program: program, compared: ComparedTypes())
      return !mayBeEmpty || comparison.fits(saved, own) ? nil : .type
    }
  }

  private func difference(_ saved: TypeEntry, _ own: TypeEntry) -> Difference? {
    guard Self.baseName(saved.name) == Self.baseName(own.name) else {
      let isRelated = saved.kind.isObject && own.kind.isObject && isRelated(saved, own)
      guard isRelated || isFormerName(saved.name, of: own) else { return .type }
      return areBothCodedOrNeither(saved, own) ? nil : .fields(of: own.name)
    }
    guard areBothCodedOrNeither(saved, own) else { return .fields(of: own.name) }
    // A migration may replace all fields, and a newer version is refused when it is read. Hand-written types list no
    // fields.
    guard saved.kind == own.kind, saved.kind == .structure || saved.kind == .object, saved.version == own.version,
      saved.superclasses == own.superclasses,
      !saved.fields.isEmpty, !own.fields.isEmpty
    else { return nil }
    return Set(saved.fields.map(\.key)).isDisjoint(with: own.fields.map(\.key)) ? .fields(of: own.name) : nil
  }

  /// Whether both are a `CodedSave`, or neither is. Not even a type without a list of fields, or of another version,
  /// reads anything of a coded value.
  private func areBothCodedOrNeither(_ saved: TypeEntry, _ own: TypeEntry) -> Bool {
    file.isCodedSave(saved) == program.isCodedSave(own)
  }

  /// Whether one class is a superclass of the other, as it was when the archive was saved or as it is now. Whether the
  /// object itself fits is checked when it is read.
  private func isRelated(_ saved: TypeEntry, _ own: TypeEntry) -> Bool {
    if saved.superclasses.contains(where: { $0.name == own.name }) { return true }
    if own.superclasses.contains(where: { $0.name == saved.name }) { return true }
    let current = program.types.first { $0.kind.isObject && $0.name == saved.name }
    return current?.superclasses.contains { $0.name == own.name } ?? false
  }

  private func isFormerName(_ name: String, of own: TypeEntry) -> Bool {
    guard !own.kind.isObject, let type = own.type else { return false }
    return (formerNames.map { $0[own.name] ?? [] } ?? type.archiveFormerNames).contains {
      Self.baseName($0) == Self.baseName(name)
    }
  }

  /// Returns a type's name without its generic arguments, whose types are compared where their values are.
  private static func baseName(_ name: String) -> Substring { name.prefix { $0 != "<" } }
}

extension Archive {
  /// Returns the type of an archive's root as Swift code, for messages. Costs a checksum of the bytes; reads no values.
  ///
  /// - Throws: `ArchiveError` if the bytes aren't an archive that this program can read.
  package static func rootType(of data: Data, limits: ArchiveLimits = .standard) throws -> String {
    try data.withUnsafeBytes { bytes in
      let file = try ArchiveFile(bytes, limits: limits)
      return file.schema.text(file.root)
    }
  }

  /// Returns the error with which `decode` refuses an archive of another type; nil if its root is of this type, or if
  /// the bytes aren't an archive that this program can read within the limits. Costs a checksum of the bytes; reads no
  /// values.
  ///
  /// - Throws: Any problem of `type` itself.
  package static func rootMismatch<V: Archivable>(
    with type: V.Type, in data: Data, limits: ArchiveLimits = .standard
  ) throws -> ArchiveError? {
    try rootMismatch(with: CompiledSchema.of(V.self), nil, in: data, limits: limits)
  }

  fileprivate static func rootMismatch(
    with compiled: CompiledSchema, _ formerNames: [String: [String]]?, in data: Data, limits: ArchiveLimits
  ) throws -> ArchiveError? {
    try data.withUnsafeBytes { bytes in
      do {
        let file = try ArchiveFile(bytes, limits: limits)
        return RootCheck(file: file.schema, program: compiled.schema, formerNames: formerNames)
          .mismatch(file.root, compiled.root)
      } catch let error as ArchiveError where [.missing, .notAnArchive, .damaged, .tooNew, .limit].contains(error.code)
      {
        return nil
      }
    }
  }
}

/// A type that the roots of archives are compared with later, on any thread: what that needs of the type itself is
/// asked when this is created.
package struct ArchiveRoot: Sendable {
  /// The type's name in archives.
  package let name: String
  private let compiled: CompiledSchema
  private let formerNames: [String: [String]]

  /// - Throws: Any problem of `type` itself.
  package init<V: Archivable>(_ type: V.Type) throws {
    name = V.archiveName
    compiled = try CompiledSchema.of(V.self)
    var formerNames: [String: [String]] = [:]
    for entry in compiled.schema.types where !entry.kind.isObject {
      formerNames[entry.name] = entry.type?.archiveFormerNames
    }
    self.formerNames = formerNames
  }

  /// As `Archive.rootMismatch`.
  package func mismatch(in data: Data, limits: ArchiveLimits = .standard) throws -> ArchiveError? {
    try Archive.rootMismatch(with: compiled, formerNames, in: data, limits: limits)
  }
}
