import Foundation

/// Reads an XML property list, with a stack of its own instead of recursion.
struct XMLReader {
  private enum Element: String {
    case plist, array, dict, key, string, integer, real, date, data
    case yes = "true"
    case no = "false"

    var isList: Bool { self == .array || self == .dict || self == .plist }
  }

  private struct OpenList {
    let element: Element
    var elements: [PropertyList] = []
    var entries: [PropertyList.Entry] = []
    /// For a dictionary: the key whose value comes next.
    var key: String?
  }

  private let limits: PropertyListLimits
  private var scanner: XMLScanner
  private var open: [OpenList] = []
  private var root: PropertyList?
  /// The number of values so far, counted as for `PropertyListLimits.values`.
  private var values = 0

  static func read(_ data: Data, limits: PropertyListLimits) throws -> PropertyList {
    guard data.count <= limits.bytes else {
      throw PropertyListError(.limit, "The file has \(data.count) bytes; the limit is \(limits.bytes)")
    }
    return try XMLText.utf8(data).withUnsafeBufferPointer { bytes in
      var reader = XMLReader(limits: limits, scanner: XMLScanner(bytes))
      do {
        return try reader.read()
      } catch var error as PropertyListError {
        error.path = reader.path
        throw error
      }
    }
  }

  private init(limits: PropertyListLimits, scanner: XMLScanner) {
    self.limits = limits
    self.scanner = scanner
  }

  /// The path of the reader's position.
  private var path: String {
    PathText.text(
      open.filter { $0.element != .plist }.map { list in
        list.element == .array ? .index(list.elements.count) : .key(list.key ?? list.entries.last?.key ?? "")
      })
  }

  private mutating func read() throws -> PropertyList {
    while true {
      switch try scanner.tag() {
      case .begin(let name, let isEmpty): try begin(name, isEmpty)
      case .end(let name):
        guard let list = open.last, list.element.rawValue == name else {
          throw scanner.error(.damaged, "</\(name)> has no matching start tag")
        }
        try end(list)
      case .done:
        guard open.isEmpty else { throw scanner.error(.damaged, "The XML ends in the middle: the file was cut off") }
        guard let root else { throw scanner.error(.damaged, "The property list contains no value") }
        return root
      }
    }
  }

  private mutating func begin(_ name: String, _ isEmpty: Bool) throws {
    guard let element = Element(rawValue: name) else {
      throw scanner.error(.unsupported, "Property lists have no element <\(name)>")
    }
    try checkPlace(of: element)
    if element.isList {
      guard open.count < limits.depth else {
        throw scanner.error(.limit, "Lists are nested more than \(limits.depth) deep")
      }
      let list = OpenList(element: element)
      open.append(list)
      if isEmpty { try end(list) }
      return
    }
    let text = isEmpty ? "" : try scanner.text(of: name)
    if element == .key {
      open[open.count - 1].key = text
    } else {
      try add(try value(of: element, text), text.utf8.count)
    }
  }

  private func checkPlace(of element: Element) throws {
    guard let last = open.last else {
      guard root == nil, element != .key else {
        throw scanner.error(
          .damaged,
          element == .key ? "A <key> is outside of a dictionary" : "There is more than one value at the top level")
      }
      return
    }
    switch (last.element, element) {
    case (_, .plist): throw scanner.error(.damaged, "A <plist> is inside another element")
    case (.dict, .key):
      if last.key != nil { throw scanner.error(.damaged, "A <key> has no value") }
    case (.dict, _):
      if last.key == nil { throw scanner.error(.damaged, "A value in a dictionary has no <key>") }
    case (_, .key): throw scanner.error(.damaged, "A <key> is outside of a dictionary")
    case (.plist, _):
      if root != nil { throw scanner.error(.damaged, "There is more than one value at the top level") }
    default: break
    }
  }

  private mutating func end(_ list: OpenList) throws {
    if list.key != nil { throw scanner.error(.damaged, "The last <key> of a dictionary has no value") }
    // Removed from `open` before it is added to its parent, so that its elements aren't copied.
    open.removeLast()
    switch list.element {
    case .array: try add(.array(list.elements))
    case .dict: try add(Self.uid(list.entries) ?? .dictionary(list.entries))
    default:
      if root == nil { throw scanner.error(.damaged, "The property list contains no value") }
    }
  }

  /// - Parameter length: The length of its text, in bytes.
  private mutating func add(_ value: PropertyList, _ length: Int = 0) throws {
    values += 1 + length / PropertyListLimits.bytesForValue
    guard values <= limits.values else {
      throw scanner.error(.limit, "The property list has more than \(limits.values) values")
    }
    switch open.last?.element {
    case .array: open[open.count - 1].elements.append(value)
    case .dict:
      guard let key = open[open.count - 1].key else { return }
      open[open.count - 1].key = nil
      open[open.count - 1].entries.append(.init(key, value))
    default: root = value
    }
  }

  /// Returns a UID, which XML represents as a dictionary.
  private static func uid(_ entries: [PropertyList.Entry]) -> PropertyList? {
    guard entries.count == 1, entries[0].key == XMLWriter.uidKey, case .integer(let number) = entries[0].value else {
      return nil
    }
    return UInt64(exactly: number).map { .uid($0) }
  }

  // MARK: Values

  private func value(of element: Element, _ text: String) throws -> PropertyList {
    if element == .string { return .string(text) }
    let word = Self.trimmed(text)
    let value: PropertyList? =
      switch element {
      case .yes: word.isEmpty ? .bool(true) : nil
      case .no: word.isEmpty ? .bool(false) : nil
      case .integer: Self.integer(word).map { .integer($0) }
      case .real: Double(word).map { .number($0) }
      case .date: XMLDate.date(String(word)).map { .date($0) }
      case .data: Base64.data(text).map { .data($0) }
      case .string, .plist, .array, .dict, .key: nil
      }
    if let value { return value }
    if element == .integer, !word.isEmpty, word.drop(while: { "+-".contains($0) }).allSatisfy(\.isHexDigit),
      word.last?.isNumber == true
    {
      throw scanner.error(.limit, "An integer takes more than 128 bits")
    }
    throw scanner.error(.damaged, "This is not a valid <\(element.rawValue)>: \"\(word.prefix(40))\"")
  }

  private static func trimmed(_ text: String) -> Substring {
    let bytes = text.utf8
    guard let first = bytes.firstIndex(where: { !XMLText.isSpace($0) }),
      let last = bytes.lastIndex(where: { !XMLText.isSpace($0) })
    else {
      return ""
    }
    return Substring(bytes[first...last])
  }

  /// Reads decimal digits, or hexadecimal ones after 0x; either with a sign.
  private static func integer(_ word: Substring) -> Int128? {
    if let value = Int64(word) { return Int128(value) }
    if let value = Int128(word) { return value }
    let isNegative = word.hasPrefix("-")
    let digits = isNegative || word.hasPrefix("+") ? word.dropFirst() : word
    guard digits.hasPrefix("0x") || digits.hasPrefix("0X"), digits.dropFirst(2).first?.isHexDigit == true else {
      return nil
    }
    return Int128((isNegative ? "-" : "") + digits.dropFirst(2), radix: 16)
  }
}
