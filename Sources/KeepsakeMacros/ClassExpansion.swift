import SwiftSyntax
import SwiftSyntaxBuilder

/// The members of a class.
///
/// A class whose own properties all have initial values and that declares no initialiser inherits those of its
/// superclass. An initialiser generated here would remove them, so the fields of such a late class are read by
/// `decodeInheritedFields`, after the inherited `init(from:)`.
///
/// The order of an object's fields: own first, then the superclass's; in a late class, the superclass's first.
struct ClassExpansion {
  let model: DeclarationModel
  let isSubclass: Bool
  let declaration: any DeclGroupSyntax

  private var isLate: Bool {
    isSubclass && !model.hasInitializer && model.startsInitialized
      && model.fields.allSatisfy { $0.startsInitialized && !$0.isLet }
  }
  private var override: String { isSubclass ? "override " : "" }
  private var open: String { model.openModifier }

  func members() -> [DeclSyntax] {
    var members = statics()
    members.append(method("encode", "to writer", "ArchiveWriter", immediateWrites))
    members.append(method("encodeReferences", "to writer", "ArchiveWriter", laterWrites))
    members.append(method("decodeReferences", "from reader", "ArchiveReader", laterReads))
    if isLate {
      members.append(
        method("decodeInheritedFields", "from reader", "ArchiveReader", immediateReads + model.unownedNotes))
    } else {
      members.append(initializer())
      if !isSubclass {
        members.append(
          "\(open)func decodeInheritedFields(from reader: inout KeepsakeArchive.ArchiveReader) throws {\n}")
      }
    }
    members += migration
    if !isSubclass && !model.hasDidDecode && !model.isFinal {
      members.append("\(open)func didDecode(context: Any?) throws {\n}")
    }
    if let plain = plainInitializer { members.append(plain) }
    // The properties of a superclass can't be merged from here.
    if !isSubclass { members += MergeExpansion(model: model).statement() + MergeExpansion(model: model).method() }
    return members.map { DeclSyntax(stringLiteral: $0) }
  }

  private func statics() -> [String] {
    var members = [
      "\(open)\(override)class var archiveName: String { \(model.body([model.nameExpression])) }",
      "\(open)\(override)class var archiveVersion: Int { \(model.body([model.version ?? "1"])) }",
      """
      \(open)\(override)class var archiveSubclasses: [any KeepsakeArchive.Archivable.Type] { \
      \(model.body(model.subclasses?.statements(of: model.genericNames.isEmpty ? model.name : nil) ?? ["[]"])) }
      """,
    ]
    if !isSubclass { members.append("\(open)class var archiveIsKeyed: Bool { false }") }
    let own = model.fields.map { model.listing($0, deferrable: $0.isDeferrable) }
    let inherited = isSubclass ? ["super.archiveFields(fields)"] : []
    let lines = ["fields.describe(\(model.name).self)"] + (isLate ? inherited + own : own + inherited)
    members.append(
      """
      \(open)\(override)class func archiveFields(_ fields: KeepsakeArchive.ArchiveFieldList) {
      \(model.body(lines))
      }
      """)
    return members
  }

  private func method(_ name: String, _ parameter: String, _ type: String, _ own: [String]) -> String {
    let variable = parameter.split(separator: " ").last ?? ""
    let label = parameter.split(separator: " ").first ?? ""
    let inherited = isSubclass ? ["try super.\(name)(\(label): &\(variable))"] : []
    let lines = isLate ? inherited + own : own + inherited
    return """
      \(open)\(override)func \(name)(\(parameter): inout KeepsakeArchive.\(type)) throws {
      \(model.body(lines))
      }
      """
  }

  private var advance: String { "writer.passFields(\(model.fields.count))" }

  private var immediateWrites: [String] {
    model.fields.enumerated().map { index, field in
      field.isDeferrable
        ? "if !writer.isDeferred(\(index)) {\ntry writer.\(field.writeCall)\n}" : "try writer.\(field.writeCall)"
    } + [advance]
  }

  private var laterWrites: [String] {
    model.fields.enumerated().compactMap { index, field in
      field.isDeferrable ? "if writer.isDeferred(\(index)) {\ntry writer.\(field.writeCall)\n}" : nil
    } + [advance]
  }

  private var laterReads: [String] {
    let later = model.fields.enumerated().filter(\.element.isDeferrable)
    guard !later.isEmpty else { return ["reader.passFields(\(model.fields.count))"] }
    return ["var fields = try reader.enter(\(model.name).self)"]
      + later.map { index, field in
        // A property that isn't optional keeps its default if an empty optional was saved.
        let present =
          field.hasDefault && !field.isOptional ? ", try fields.isExact || reader.hasField(\(index), &fields)" : ""
        return """
          if reader.isDeferred(\(index))\(present) {
          self.\(field.name) = try reader.field(\(index), &fields)
          }
          """
      } + ["reader.passFields(&fields, \(model.fields.count))"] + model.unownedNotes
  }

  private var immediateReads: [String] {
    guard !model.fields.isEmpty else { return ["reader.passFields(0)"] }
    let exact = model.fields.enumerated().map { index, field in
      guard field.isDeferrable else { return "self.\(field.name) = try reader.\(field.readCall)" }
      guard field.startsInitialized else {
        return
          """
          self.\(field.name) = try reader.isDeferred(\(index)) ? \(field.emptyCollection ?? "nil") : reader.readField()
          """
      }
      return "if !reader.isDeferred(\(index)) {\nself.\(field.name) = try reader.readField()\n}"
    }
    let mapped = model.fields.enumerated().map { index, field in
      guard field.isDeferrable, !field.startsInitialized else { return field.mappedRead(index) }
      return
        """
        self.\(field.name) = try reader.isDeferred(\(index)) ? \(field.emptyCollection ?? "nil") : \
        reader.field(\(index), &fields)
        """
    }
    return [
      """
      var fields = try reader.enter(\(model.name).self)
      if fields.isExact {
      \(exact.joined(separator: "\n"))
      } else {
      \(mapped.joined(separator: "\n"))
      }
      reader.passFields(&fields, \(model.fields.count))
      """
    ]
  }

  /// Each class calls the hook of its superclass, which is only possible through `super`. So each class must have a
  /// hook of its own, or the same hook would be called for two classes.
  private var migration: [String] {
    var members: [String] = []
    if !model.hasMigrate && (isSubclass || !model.isFinal) {
      members.append("\(open)\(override)func migrate(_ saved: inout KeepsakeArchive.ArchiveMigration) throws {\n}")
    }
    if isSubclass {
      members.append(
        """
        \(open)override func migrateSuperclasses(_ saved: inout KeepsakeArchive.ArchiveMigration) throws {
        try super.migrateSuperclasses(&saved)
        if saved.enterNextClass() {
        try super.migrate(&saved)
        }
        }
        """)
    } else if !model.isFinal {
      members.append("\(open)func migrateSuperclasses(_ saved: inout KeepsakeArchive.ArchiveMigration) throws {\n}")
    }
    return members
  }

  private func initializer() -> String {
    let lines = immediateReads + (isSubclass ? ["try super.init(from: &reader)"] : []) + model.unownedNotes
    return """
      \(model.modifier)required init(from reader: inout KeepsakeArchive.ArchiveReader) throws {
      \(model.body(lines))
      }
      """
  }

  /// The initialiser that Swift would have generated for the class if it had no other.
  private var plainInitializer: String? {
    guard !isSubclass, !model.hasInitializer, model.fields.allSatisfy(\.startsInitialized) else { return nil }
    let isObjectiveC = declaration.inheritedNames.first == "NSObject"
    return "\(isObjectiveC ? "override " : "")init() {\n\(isObjectiveC ? "super.init()" : "")\n}"
  }
}
