public import Foundation
import KeepsakeArchive

extension ArchiveDifference {
  /// Returns a text for people: a line for each difference, with `+` before added values and `-` before removed ones;
  /// empty if there is none.
  ///
  /// - Returns: The text.
  public func text() -> String {
    var lines: [String] = []
    if !types.isEmpty { lines += ["types"] + types.map { "  " + Self.line($0) } }
    if !changes.isEmpty || !omitted.isEmpty {
      lines += lines.isEmpty ? ["values"] : ["", "values"]
      lines += changes.map { "  " + Self.line($0) }
      lines += omitted.map { "    ... \($0.count) more at \($0.pattern)" }
    }
    if !removedObjects.isEmpty || !addedObjects.isEmpty {
      lines += lines.isEmpty ? ["objects"] : ["", "objects"]
      lines += Self.counts(removedObjects).map { "  - \($0.count) \(PrintableText.name($0.type))" }
      lines += Self.counts(addedObjects).map { "  + \($0.count) \(PrintableText.name($0.type))" }
    }
    if !lines.isEmpty, !opened.isEmpty {
      lines = ["files"] + zip(["-", "+"], opened).map { "  \($0) \($1.text)" } + [""] + lines
    }
    return lines.isEmpty ? "" : lines.joined(separator: "\n") + "\n"
  }

  private static func line(_ change: Change) -> String {
    switch change.kind {
    case .added: "+ \(change.path): \(change.newText ?? "")"
    case .removed: "- \(change.path): \(change.oldText ?? "")"
    case .changed: "  \(change.path): \(change.oldText ?? "") -> \(change.newText ?? "")"
    case .reordered: "  \(change.path): elements in another order"
    }
  }

  private static func line(_ change: TypeChange) -> String {
    let type = PrintableText.name(change.type)
    let place = type + (change.member.map { "." + PrintableText.name($0) } ?? "")
    let (old, new) = (PrintableText.cut(change.old ?? "", 500), PrintableText.cut(change.new ?? "", 500))
    return switch change.kind {
    case .typeAdded: "+ \(type)"
    case .typeRemoved: "- \(type)"
    case .version: "  \(type): version \(old) -> \(new)"
    case .kind: "  \(type): \(old) -> \(new)"
    case .fieldAdded: "+ \(place): \(new)"
    case .fieldRemoved: "- \(place): \(old)"
    case .fieldType: "  \(place): \(old) -> \(new)"
    case .caseAdded: "+ case \(place)"
    case .caseRemoved: "- case \(place)"
    case .root: "  root: \(old) -> \(new)"
    }
  }

  private static func counts(_ objects: [LoneObject]) -> [(type: String, count: Int)] {
    Dictionary(grouping: objects, by: \.type).map { ($0.key, $0.value.count) }.sorted { $0.type < $1.type }
  }

  /// Returns a JSON document for programs, ending in a line feed. Values are written as by `ArchiveInspection.json()`;
  /// a reference refers to an object of the archive that contains it.
  ///
  /// - Returns: The document, in UTF-8.
  public func json() -> Data {
    var json = JSONWriter()
    json.beginObject()
    json.key("equal")
    json.value(isEmpty)
    if !opened.isEmpty {
      json.key("wrappings")
      json.beginArray()
      for archive in opened { json.value(wrappings: archive.wrappings) }
      json.end()
    }
    json.key("types")
    json.beginArray()
    for change in types { json.value(change) }
    json.end()
    json.key("changes")
    json.beginArray()
    for change in changes { json.value(change) }
    json.end()
    json.key("omitted")
    json.beginArray()
    for omission in omitted {
      json.beginObject()
      json.key("pattern")
      json.value(omission.pattern)
      json.key("count")
      json.value(omission.count)
      json.end()
    }
    json.end()
    for (name, objects) in [("removedObjects", removedObjects), ("addedObjects", addedObjects)] {
      json.key(name)
      json.beginArray()
      for object in objects { json.object(object.number, object.type, object.fields) }
      json.end()
    }
    json.end()
    return Data(json.bytes + [0x0A])
  }
}

extension JSONWriter {
  fileprivate mutating func value(_ change: ArchiveDifference.TypeChange) {
    beginObject()
    for (name, text) in [
      ("change", change.kind.rawValue), ("type", change.type), ("member", change.member), ("old", change.old),
      ("new", change.new),
    ] {
      guard let text else { continue }
      key(name)
      value(text)
    }
    end()
  }

  fileprivate mutating func value(_ change: ArchiveDifference.Change) {
    beginObject()
    key("change")
    value(change.kind.rawValue)
    key("path")
    value(change.path)
    for (name, saved) in [("old", change.old), ("new", change.new)] {
      guard let saved else { continue }
      key(name)
      value(saved)
    }
    end()
  }
}
