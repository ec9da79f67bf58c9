import Foundation

/// Writes an XML property list in the style of Apple's tools, one value per line, with a stack of its own instead of
/// recursion.
struct XMLWriter {
  static let uidKey = "CF$UID"
  private static let header = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">

    """
  /// Deeper levels aren't indented further, because deep trees would be mostly tabs.
  private static let deepestIndent = 64

  private struct OpenList {
    let value: PropertyList
    var next = 0
  }

  private let limits: PropertyListLimits
  private var output = Array(Self.header.utf8)
  private var open: [OpenList] = []
  private var written = 0

  static func write(_ root: PropertyList, limits: PropertyListLimits) throws -> Data {
    var writer = XMLWriter(limits: limits)
    try writer.put(root)
    while var list = writer.open.popLast() { try writer.go(on: &list) }
    writer.output += "</plist>\n".utf8
    return Data(writer.output)
  }

  private init(limits: PropertyListLimits) {
    self.limits = limits
  }

  private mutating func go(on list: inout OpenList) throws {
    let index = list.next
    list.next += 1
    switch list.value {
    case .array(let elements):
      guard index < elements.count else { return line("</array>") }
      open.append(list)
      try put(elements[index])
    case .dictionary(let entries):
      guard index < entries.count else { return line("</dict>") }
      open.append(list)
      try element("key", entries[index].key)
      try put(entries[index].value)
    default: break
    }
  }

  private mutating func put(_ value: PropertyList) throws {
    written += 1
    guard written <= limits.values, output.count <= limits.bytes else {
      throw error(
        .limit, "The property list has more than \(limits.values) values or takes more than \(limits.bytes) bytes")
    }
    switch value {
    case .null: throw error(.unwritable, "XML has no null: leave the key out, or write a binary property list")
    case .set: throw error(.unwritable, "XML has no sets: write an array, or a binary property list")
    case .bool(let value): line(value ? "<true/>" : "<false/>")
    case .integer(let value): line("<integer>\(value)</integer>")
    case .number(let value): line("<real>\(Self.text(value))</real>")
    // With the digits of the Double as which it will be read: the Float's own, fewer digits are a different Double.
    case .float(let value): line("<real>\(Self.text(Double(value)))</real>")
    case .string(let text): try element("string", text)
    case .date(let date):
      guard let text = XMLDate.text(date) else {
        throw error(.unwritable, "XML can represent only dates of the years 0 to 9999")
      }
      line("<date>\(text)</date>")
    case .data(let data):
      line("<data>")
      for text in Base64.lines(data) { line(text) }
      line("</data>")
    case .uid(let uid):
      line("<dict>")
      line("\t<key>\(Self.uidKey)</key>")
      line("\t<integer>\(uid)</integer>")
      line("</dict>")
    case .array(let elements): try begin(value, elements.isEmpty, "array")
    case .dictionary(let entries): try begin(value, entries.isEmpty, "dict")
    }
  }

  private mutating func begin(_ value: PropertyList, _ isEmpty: Bool, _ name: String) throws {
    if isEmpty { return line("<\(name)/>") }
    // The reader also counts <plist>.
    guard open.count + 1 < limits.depth else { throw error(.limit, "Lists are nested more than \(limits.depth) deep") }
    line("<\(name)>")
    open.append(OpenList(value: value))
  }

  private static func text(_ value: Double) -> String {
    value.isNaN ? "nan" : value.isInfinite ? (value < 0 ? "-infinity" : "+infinity") : "\(value)"
  }

  private mutating func element(_ name: String, _ text: String) throws {
    indent()
    output += "<\(name)>".utf8
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": output += "&amp;".utf8
      case "<": output += "&lt;".utf8
      case ">": output += "&gt;".utf8
      // A parser would convert it to a line feed.
      case "\r": output += "&#13;".utf8
      case "\t", "\n": output += String(scalar).utf8
      case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}":
        throw error(
          .unwritable,
          """
          XML can't represent the character U+\(String(scalar.value, radix: 16)) in a string: write a binary property \
          list
          """)
      default: output += UTF8.encode(scalar).map { Array($0) } ?? []
      }
    }
    output += "</\(name)>\n".utf8
  }

  private mutating func line(_ text: some StringProtocol) {
    indent()
    output += text.utf8
    output.append(UInt8(ascii: "\n"))
  }

  private mutating func indent() {
    // A list is in `open` only while its contents are written, not while its own start or end tag is.
    for _ in 0..<min(open.count, Self.deepestIndent) { output.append(UInt8(ascii: "\t")) }
  }

  private func error(_ code: PropertyListError.Code, _ message: String) -> PropertyListError {
    let path = open.map { list -> PathText.Part in
      if case .dictionary(let entries) = list.value { return .key(entries[list.next - 1].key) }
      return .index(list.next - 1)
    }
    return PropertyListError(code, message, path: PathText.text(path))
  }
}
