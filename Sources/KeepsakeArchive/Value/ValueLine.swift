package import Foundation

/// Writes a value on one line, for people: `Item(kind: 3, tags: ["a", "b"])`.
package struct ValueLine {
  /// The maximum number of elements shown of a list, and of characters of a string.
  package var longest: Int
  /// The length at which the whole line is truncated.
  package var characters: Int
  /// Returns the name of a type by its index; empty if it isn't known.
  private let typeName: (Int) -> String
  /// Returns the text for a reference.
  private let reference: (Int) -> String

  package init(
    longest: Int, characters: Int, typeName: @escaping (Int) -> String = { _ in "" },
    reference: @escaping (Int) -> String = { "#\($0)" }
  ) {
    (self.longest, self.characters, self.typeName, self.reference) = (longest, characters, typeName, reference)
  }

  /// Keys and names are truncated at this length: in valid archives they are words, in others they could be as long as
  /// the archive.
  static let nameCharacters = 200

  package func text(_ value: ArchiveValue) -> String {
    let (line, isWhole) = start(of: value)
    return isWhole ? line : line + "..."
  }

  /// Returns the line if it needn't be truncated; otherwise nil.
  package func wholeText(_ value: ArchiveValue) -> String? {
    let (line, isWhole) = start(of: value)
    return isWhole && line.utf8.count <= characters ? line : nil
  }

  private func start(of value: ArchiveValue) -> (line: String, isWhole: Bool) {
    var line = ""
    var walk = ValueWalk(value, longest: longest)
    var closers: [String] = []
    // True at the beginning and after an opening bracket, where no separator is needed.
    var isFirst = true
    while let event = walk.next() {
      guard line.utf8.count < characters else { return (line, false) }
      switch event {
      case .end:
        line += closers.popLast() ?? ""
        isFirst = false
      case .more(let count): line += ", ... \(count) in all"
      case .value(let value, let label):
        if case .value = label { line += ": " } else if !isFirst { line += ", " }
        if case .field(let key) = label { line += PrintableText.name(key) + ": " }
        isFirst = false
        guard let (opener, closer) = brackets(of: value) else {
          line += scalar(value)
          continue
        }
        line += opener
        closers.append(closer)
        isFirst = true
      }
    }
    return (line, true)
  }

  private func brackets(of value: ArchiveValue) -> (String, String)? {
    switch value {
    case .vector: ("(", ")")
    case .array, .set: ("[", "]")
    case .dictionary(let pairs): ("[", pairs.isEmpty ? ":]" : "]")
    case .structure(let type, _): (name(type) + "(", ")")
    case .enumeration(_, let name, let fields):
      fields.isEmpty ? (".\(PrintableText.name(name))", "") : (".\(PrintableText.name(name))(", ")")
    default: nil
    }
  }

  private func name(_ type: Int) -> String { PrintableText.name(typeName(type)) }

  /// Returns the text of a value that contains no others.
  func scalar(_ value: ArchiveValue) -> String {
    switch value {
    case .none: "nil"
    case .bool(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .unsigned(let value): "\(value)"
    case .number(let value): "\(value)"
    case .decimal(let digits): PrintableText.cut(digits, longest)
    case .string(let text): PrintableText.quoted(text, longest: longest)
    case .data(let data):
      "\(data.count) bytes " + data.prefix(16).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        + (data.count > 16 ? "..." : "")
    case .date(let date): Self.iso(date) ?? "\(date.timeIntervalSinceReferenceDate) s"
    case .uuid(let uuid): uuid.uuidString
    case .url(let text): PrintableText.cut(text, longest)
    case .reference(let number): reference(number)
    case .enumeration, .vector, .structure, .array, .set, .dictionary: text(value)
    }
  }

  /// Returns a date to the nearest millisecond, without one for a whole second. Only for years of four digits: others
  /// don't occur in practice, and formatting them can fail.
  package static func iso(_ date: Date) -> String? {
    let seconds = date.timeIntervalSinceReferenceDate
    guard seconds > -62_000_000_000 && seconds < 252_000_000_000 else { return nil }
    guard seconds != seconds.rounded() else { return date.ISO8601Format() }
    // The style cuts off, and most milliseconds are a little less in binary than in decimal.
    let nearest = Date(timeIntervalSinceReferenceDate: ((seconds * 1_000).rounded() + 0.25) / 1_000)
    return nearest.ISO8601Format(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
  }
}
