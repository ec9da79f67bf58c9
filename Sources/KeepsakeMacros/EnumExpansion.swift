/// The members of an enum's extension.
struct EnumExpansion {
  let model: DeclarationModel

  func members() -> [String] {
    commonStatics(model) + [encode(), initializer()]
  }

  /// Generated in the type itself, where the names in the payloads' types have the same meaning as in the source.
  func listing() -> String {
    var lines = ["fields.describe(\(model.typeName).self)"]
    for enumCase in model.cases {
      let value = enumCase.payloads.isEmpty ? ", \(model.typeName).\(enumCase.name)" : ""
      lines.append("fields.enumCase(\(model.quoted(enumCase.key))\(value))")
      for payload in enumCase.payloads {
        lines.append("fields.payload(\(model.quoted(payload.key)), (\(payload.type)).self)")
      }
      if enumCase.isFallback { lines.append("fields.fallbackCase()") }
    }
    return """
      \(model.modifier)static func archiveFields(_ fields: KeepsakeArchive.ArchiveFieldList)\(model.whereClause) {
      \(model.body(lines))
      }
      """
  }

  private func encode() -> String {
    let cases = model.cases.enumerated().map { index, enumCase in
      let names = enumCase.payloads.indices.map { "let value\($0)" }.joined(separator: ", ")
      let writes = enumCase.payloads.indices.map { place in
        "\n" + enumCase.position.placed("try writer.writePayload(value\(place))")
      }.joined()
      return """
        case .\(enumCase.name)\(names.isEmpty ? "" : "(\(names))"):
        try writer.writeCase(\(index))\(writes)
        """
    }
    return """
      \(model.modifier)func encode(to writer: inout KeepsakeArchive.ArchiveWriter) throws {
      \(model.body(["switch self {"] + cases + ["}", "writer.endCase()"]))
      }
      """
  }

  private func initializer() -> String {
    let cases = model.cases.enumerated().map { index, enumCase in
      let values = enumCase.payloads.enumerated().map { place, payload in
        let label = payload.label.map { "\($0): " } ?? ""
        if enumCase.isFallback {
          return "\(label)try reader.caseKey(\(place), &fields\(payload.defaultValue.map { ", default: \($0)" } ?? ""))"
        }
        let fallback = payload.defaultValue ?? (payload.isOptional ? "nil" : nil)
        return
          """
          \(label)try reader.field(\(place), \
          &fields\(fallback.map { ", \(payload.isOptional ? "ifAbsent" : "default"): \($0)" } ?? ""))
          """
      }
      return """
        case \(index):
        self = .\(enumCase.name)\(values.isEmpty ? "" : "(\(values.joined(separator: ", ")))")
        """
    }
    let lines =
      ["var fields = try reader.enterCase(\(model.typeName).self)", "switch fields.caseIndex {"] + cases
      + ["default:", "throw reader.invalidCase()", "}", "try reader.leaveCase(&fields)", model.migration]
    return """
      \(model.modifier)init(from reader: inout KeepsakeArchive.ArchiveReader) throws {
      \(model.body(lines))
      }
      """
  }
}
