import KeepsakeArchive

/// Output for people.
extension ArchiveInspection {
  /// What the source was opened from, in front of what it is, such as "gzip, in it: "; empty for a file as it is.
  package var opening: String { wrappings.map { "\($0), in it: " }.joined() }

  /// Returns the types, the root and the objects as indented text. Control characters are shown as escapes.
  ///
  /// - Parameter longest: The maximum number of elements shown of a list, characters of a string, and objects of a
  ///   class.
  /// - Returns: The text, ending in a line feed.
  public func text(longest: Int = 50) -> String { text(longest: longest) { text, _ in text } }

  /// Returns the same text, each piece of it as `paint` shows it.
  package func text(longest: Int = 50, paint: TextPaint) -> String {
    var lines: [String]
    if let foreign {
      lines = [
        "\(foreign), " + PrintableText.count(header.byteCount, "byte")
          + (objects.isEmpty ? "" : ", " + PrintableText.count(objects.count, "object"))
      ]
      let classes = types.filter { $0.count > 0 }
      if !classes.isEmpty {
        lines += ["", paint("classes", .heading)]
        lines += classes.map {
          "  \(paint(PrintableText.name($0.name), .name))  " + paint("\($0.count) saved", .faint)
        }
      }
    } else {
      lines = [
        "archive, format \(header.formatVersion), \(PrintableText.count(header.byteCount, "byte")), "
          + "\(PrintableText.count(header.objectCount, "object")), root \(PrintableText.name(header.rootType))", "",
        paint("types", .heading),
      ]
      for type in types { lines += Self.lines(of: type, paint) }
    }
    lines[0] = opening + lines[0]
    lines += ["", paint("root", .heading)]
    append(root, label: "", indent: 1, longest, paint, &lines)
    var shown = Array(repeating: 0, count: types.count)
    var hidden = shown
    for (number, object) in objects.enumerated() {
      guard let object else {
        lines += ["", paint("#\(number) not saved, only referred to", .faint)]
        continue
      }
      guard shown[object.type] < longest else {
        hidden[object.type] += 1
        continue
      }
      shown[object.type] += 1
      lines += ["", paint("#\(number) \(PrintableText.name(types[object.type].name))", .heading)]
      for field in object.fields {
        append(field.value, label: PrintableText.name(field.key) + ": ", indent: 1, longest, paint, &lines)
      }
    }
    for (type, count) in zip(types, hidden) where count > 0 {
      lines += ["", paint("... \(count) more \(PrintableText.name(type.name))", .faint)]
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Returns the root on one line, truncated if it is long. For lists of small archives.
  package func rootLine(longest: Int = 50, characters: Int = 200) -> String {
    ValueLine(longest: longest, characters: characters, typeName: typeName, reference: caption).text(root)
  }

  /// Returns a type's name by its index; empty if there is no such type.
  func typeName(_ type: Int) -> String { types.indices.contains(type) ? types[type].name : "" }

  /// Returns the text for a reference: the object's number and class.
  func caption(_ number: Int) -> String {
    guard objects.indices.contains(number), let object = objects[number] else { return "#\(number) (not saved)" }
    return "#\(number) \(PrintableText.name(types[object.type].name))"
  }

  private static func lines(of type: TypeDescription, _ paint: TextPaint) -> [String] {
    func text(_ fields: [Field]) -> [String] {
      fields.map { paint(PrintableText.name($0.key) + ": ", .name) + PrintableText.cut($0.type, 500) }
    }
    let size = "\(type.count) saved in \(PrintableText.count(type.byteCount, "byte"))"
    var lines = [
      "  \(PrintableText.name(type.name))  " + paint("version \(type.version), \(type.kind.words), \(size)", .faint)
    ]
    for field in text(type.fields) { lines.append("    " + field) }
    for enumCase in type.cases {
      let payload = text(enumCase.fields).joined(separator: ", ")
      lines.append(
        "    case \(paint(PrintableText.name(enumCase.name), .name))\(payload.isEmpty ? "" : "(\(payload))")")
    }
    return lines
  }

  /// The maximum length of a value that is written on one line.
  private static let lineCharacters = 100
  /// The maximum length of a line that is never split, such as a list of numbers.
  private static let plainCharacters = 2_000
  /// Deeper levels aren't indented further: nobody could read that, and a forged archive could fill the memory with
  /// spaces.
  private static let deepestIndent = 40

  private func append(
    _ value: ArchiveValue, label: String, indent: Int, _ longest: Int, _ paint: TextPaint, _ lines: inout [String]
  ) {
    var line = ValueLine(longest: longest, characters: Self.lineCharacters, typeName: typeName, reference: caption)
    var walk = ValueWalk(value, longest: longest)
    // The key of a dictionary's pair, if it is short enough to be put before its value.
    var pendingKey: String?
    while let event = walk.next() {
      let margin = String(repeating: "  ", count: min(indent + walk.depth, Self.deepestIndent))
      switch event {
      case .end: continue
      case .more(let count): lines.append(margin + paint("... \(count) in all", .faint))
      case .value(let value, let place):
        var title = walk.depth == 0 ? label : Self.title(place)
        if case .value = place, let key = pendingKey { title = key + ": " }
        pendingKey = nil
        line.characters = Self.isPlainList(value) ? Self.plainCharacters : Self.lineCharacters
        if value.childCount == nil || Self.isPlainList(value) {
          if value.childCount != nil { walk.skipChildren() }
          if case .key = place {
            pendingKey = line.text(value)
          } else {
            lines.append(margin + paint(title, .name) + line.text(value))
          }
        } else if walk.depth > 0, let short = line.wholeText(value) {
          walk.skipChildren()
          if case .key = place { pendingKey = short } else { lines.append(margin + paint(title, .name) + short) }
        } else {
          lines.append(margin + paint(title, .name) + heading(of: value))
        }
      }
    }
  }

  private static func title(_ place: ValueWalk.Label) -> String {
    switch place {
    case .none: ""
    case .field(let key): PrintableText.name(key) + ": "
    case .element(let index): "\(index): "
    case .key: "key "
    case .value: "value "
    }
  }

  /// Returns whether a value is a list of numbers, references and the like, or another value that never takes more than
  /// one line.
  private static func isPlainList(_ value: ArchiveValue) -> Bool {
    switch value {
    case .array(let values), .set(let values): values.allSatisfy(\.isPlain)
    case .vector: true
    case .enumeration(_, _, let fields): fields.isEmpty
    case .dictionary(let pairs): pairs.isEmpty
    default: false
    }
  }

  private func heading(of value: ArchiveValue) -> String {
    switch value {
    case .structure(let type, let fields):
      types[type].name.isEmpty
        ? PrintableText.count(fields.count, "key") : PrintableText.name(types[type].name)
    case .enumeration(_, let name, _): ".\(PrintableText.name(name))"
    case .dictionary(let pairs): PrintableText.count(pairs.count, "pair")
    default: value.childCount.map { PrintableText.count($0, "element") } ?? ""
    }
  }
}

extension ArchiveInspection.Kind {
  fileprivate var words: String {
    switch self {
    case .structure: "struct"
    case .enumeration: "enum"
    case .object: "class"
    case .keyedValue: "written by hand"
    case .keyedObject: "class written by hand"
    }
  }
}
