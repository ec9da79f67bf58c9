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
    if !lines.isEmpty, sides.contains(where: { !$0.wrappings.isEmpty }) {
      lines = ["files"] + zip(["-", "+"], sides).map { "  \($0) \($1.text)" } + [""] + lines
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
}
