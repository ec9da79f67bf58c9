/// The members of a struct's extension.
struct StructExpansion {
  let model: DeclarationModel

  func members() -> [String] {
    commonStatics(model) + [encode(), initializer()]
  }

  /// Generated in the type itself, where the names in the properties' types have the same meaning as in the source.
  func listing() -> String {
    let listing = model.fields.map { model.listing($0, deferrable: false) }
    return """
      \(model.modifier)static func archiveFields(_ fields: KeepsakeArchive.ArchiveFieldList)\(model.whereClause) {
      \(model.body(["fields.describe(Self.self)"] + listing))
      }
      """
  }

  private func encode() -> String {
    let lines = model.fields.isEmpty ? ["writer.writeEmpty()"] : model.fields.map { "try writer.\($0.writeCall)" }
    return """
      \(model.modifier)func encode(to writer: inout KeepsakeArchive.ArchiveWriter) throws {
      \(model.body(lines))
      }
      """
  }

  private func initializer() -> String {
    let exact = model.fields.map { "self.\($0.name) = try reader.\($0.readCall)" }
    let mapped = model.fields.enumerated().map { $1.mappedRead($0) }
    let reading =
      model.fields.isEmpty
      ? "try reader.readEmpty()"
      : """
      if fields.isExact {
      \(exact.joined(separator: "\n"))
      } else {
      \(mapped.joined(separator: "\n"))
      }
      """
    let lines =
      ["var fields = try reader.enter(\(model.typeName).self)", reading, "try reader.leave(&fields)"]
      + model.unownedNotes + [model.migration]
    return """
      \(model.modifier)init(from reader: inout KeepsakeArchive.ArchiveReader) throws {
      \(model.body(lines))
      }
      """
  }
}

extension DeclarationModel {
  /// Calls the hook of a value that was saved with an older version of its type.
  var migration: String { "if fields.isOlder {\ntry reader.migrate(&self, fields)\n}" }

  /// Reports to the reader the objects that the value doesn't own: their owner must be in the archive, too.
  var unownedNotes: [String] { fields.filter { $0.strength == .unowned }.map { "reader.noteUnowned(self.\($0.name))" } }
}

func commonStatics(_ model: DeclarationModel) -> [String] {
  var members = ["\(model.modifier)static var archiveName: String { \(model.body([model.nameExpression])) }"]
  if let version = model.version {
    members.append("\(model.modifier)static var archiveVersion: Int { \(model.body([version])) }")
  }
  members.append("\(model.modifier)static var archiveIsKeyed: Bool { false }")
  return members
}

extension StoredField {
  var writeCall: String {
    switch strength {
    case .strong: isCoded ? "writeCodedField(self.\(name))" : "writeField(self.\(name))"
    case .weak: "writeWeakField(self.\(name))"
    case .unowned: isOptional ? "writeWeakField(self.\(name))" : "writeUnownedField(self.\(name))"
    }
  }

  /// Reads the field from an archive that an identical declaration wrote.
  var readCall: String { isCoded ? "readCodedField()" : "readField()" }

  /// Generates the reading of the field from an archive whose type was declared differently.
  func mappedRead(_ index: Int) -> String {
    let read = "reader.\(isCoded ? "codedField" : "field")(\(index), &fields)"
    if startsInitialized {
      return """
        if try reader.\(isOptional ? "hasOptionalField" : "hasField")(\(index), &fields) {
        self.\(name) = try \(read)
        }
        """
    }
    if isOptional {
      return "self.\(name) = try reader.hasOptionalField(\(index), &fields) ? \(read) : nil"
    }
    return "self.\(name) = try \(read)"
  }
}
