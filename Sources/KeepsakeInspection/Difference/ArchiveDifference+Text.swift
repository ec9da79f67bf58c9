public import Foundation
import KeepsakeArchive

extension ArchiveDifference {
  /// Returns a text for people: a line for each difference, with `+` before added values and `-` before removed ones;
  /// empty if there is none.
  ///
  /// - Returns: The text.
  public func text() -> String { text { text, _ in text } }

  /// Returns the same text, each piece of it as `paint` shows it.
  package func text(paint: TextPaint) -> String {
    var lines: [String] = []
    func begin(_ title: String) { lines += (lines.isEmpty ? [] : [""]) + [paint(title, .heading)] }
    if !types.isEmpty {
      begin("types")
      lines += types.map { "  " + Self.line($0, paint) }
    }
    if !changes.isEmpty || !omitted.isEmpty {
      begin("values")
      lines += changes.map { "  " + Self.line($0, paint) }
      lines += omitted.map { "    " + paint("... \($0.count) more at \($0.pattern)", .faint) }
    }
    if !removedObjects.isEmpty || !addedObjects.isEmpty {
      begin("objects")
      lines += Self.counts(removedObjects).map {
        "  " + paint("- \($0.count) \(PrintableText.name($0.type))", .removed)
      }
      lines += Self.counts(addedObjects).map { "  " + paint("+ \($0.count) \(PrintableText.name($0.type))", .added) }
    }
    if let classes, !classes.isEmpty {
      begin("classes")
      lines += classes.map { "    \($0.path): \($0.text)" }
      lines += omittedClasses.map { "    " + paint("... \($0.count) more: \($0.pattern)", .faint) }
    }
    if !lines.isEmpty, !opened.isEmpty {
      lines = ["files"] + zip(["-", "+"], opened).map { "  \($0) \($1.text)" } + [""] + lines
    }
    return lines.isEmpty ? "" : lines.joined(separator: "\n") + "\n"
  }

  private static func line(_ change: Change, _ paint: TextPaint) -> String {
    switch change.kind {
    case .added: paint("+ \(change.path): \(change.newText ?? "")", .added)
    case .removed: paint("- \(change.path): \(change.oldText ?? "")", .removed)
    case .changed: "  \(change.path): \(changed(change.oldText ?? "", change.newText ?? "", paint))"
    case .reordered: "  \(change.path): elements in another order"
    }
  }

  private static func changed(_ old: String, _ new: String, _ paint: TextPaint) -> String {
    "\(paint(old, .removed)) -> \(paint(new, .added))"
  }

  private static func line(_ change: TypeChange, _ paint: TextPaint) -> String {
    let type = PrintableText.name(change.type)
    let place = type + (change.member.map { "." + PrintableText.name($0) } ?? "")
    let (old, new) = (PrintableText.cut(change.old ?? "", 500), PrintableText.cut(change.new ?? "", 500))
    return switch change.kind {
    case .typeAdded: paint("+ \(type)", .added)
    case .typeRemoved: paint("- \(type)", .removed)
    case .version: "  \(type): version \(changed(old, new, paint))"
    case .kind: "  \(type): \(changed(old, new, paint))"
    case .fieldAdded: paint("+ \(place): \(new)", .added)
    case .fieldRemoved: paint("- \(place): \(old)", .removed)
    case .fieldType: "  \(place): \(changed(old, new, paint))"
    case .caseAdded: paint("+ case \(place)", .added)
    case .caseRemoved: paint("- case \(place)", .removed)
    case .root: "  root: \(changed(old, new, paint))"
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
    json.value(omitted)
    if let classes {
      json.key("classes")
      json.beginArray()
      for change in classes { json.value(change) }
      json.end()
      json.key("omittedClasses")
      json.value(omittedClasses)
    }
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
  fileprivate mutating func value(_ omitted: [ArchiveDifference.Omission]) {
    beginArray()
    for omission in omitted {
      beginObject()
      key("pattern")
      value(omission.pattern)
      key("count")
      value(omission.count)
      end()
    }
    end()
  }

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
