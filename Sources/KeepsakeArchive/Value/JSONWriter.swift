import Foundation

/// Writes JSON without recursion: the encoders that come with Swift take stack for each level, and archives may nest deep.
///
/// The caller keeps to JSON's grammar; keys come in the order in which they are given.
struct JSONText {
  private(set) var bytes: [UInt8] = []
  /// Of each open object or array: whether nothing is in it yet, and its closing bracket.
  private var open: [(isEmpty: Bool, closer: UInt8)] = []
  private var followsKey = false
  /// What is nested deeper isn't moved farther to the right: a forged archive could fill the memory with spaces.
  private static let deepestIndent = 64

  mutating func beginObject() { begin("{", "}") }
  mutating func beginArray() { begin("[", "]") }

  mutating func end() {
    guard let last = open.popLast() else { return }
    if !last.isEmpty { newLine() }
    bytes.append(last.closer)
  }

  mutating func key(_ text: String) {
    separate()
    string(text)
    bytes += [UInt8(ascii: ":"), UInt8(ascii: " ")]
    followsKey = true
  }

  mutating func value(_ text: String) {
    separate()
    string(text)
  }

  mutating func value(_ value: some BinaryInteger) { raw("\(value)") }
  mutating func value(_ value: Bool) { raw(value ? "true" : "false") }
  mutating func null() { raw("null") }

  /// Infinity and not-a-number, which JSON doesn't have, are strings.
  mutating func value(_ number: Double) {
    if number.isFinite { raw("\(number)") } else { value("\(number)") }
  }

  private mutating func begin(_ opener: Unicode.Scalar, _ closer: Unicode.Scalar) {
    separate()
    bytes.append(UInt8(ascii: opener))
    open.append((true, UInt8(ascii: closer)))
  }

  private mutating func raw(_ text: String) {
    separate()
    bytes += text.utf8
  }

  private mutating func separate() {
    if followsKey {
      followsKey = false
      return
    }
    guard let last = open.last else { return }
    if !last.isEmpty { bytes.append(UInt8(ascii: ",")) }
    open[open.count - 1].isEmpty = false
    newLine()
  }

  private mutating func newLine() {
    bytes.append(UInt8(ascii: "\n"))
    for _ in 0..<min(open.count, Self.deepestIndent) { bytes += [0x20, 0x20] }
  }

  private mutating func string(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case UInt8(ascii: "\n"): bytes += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
      case 0..<0x20, 0x7F:
        let digits = String(byte, radix: 16)
        bytes += "\\u00\(digits.utf8.count < 2 ? "0" : "")\(digits)".utf8
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}

extension JSONText {
  /// Of a value that has been begun.
  private struct Opened {
    /// A dictionary whose keys are not all strings: a list of pairs, each a list of two.
    let isPairs: Bool
    /// It stands in such a pair.
    let closesPair: Bool
  }

  /// Structs are objects with their keys, references are `{"$ref": n}`, enum cases their name or `{"$case": name, ...}`, dictionaries
  /// objects if all keys are strings, else lists of pairs.
  mutating func value(_ value: ArchiveValue) {
    var walk = ValueWalk(value)
    var opened: [Opened] = []
    while let event = walk.next() {
      guard case .value(let value, let label) = event else {
        end()
        if opened.popLast()?.closesPair == true { end() }
        continue
      }
      let isInPair = opened.last?.isPairs == true
      switch label {
      case .field(let key): self.key(key)
      case .key:
        if !isInPair, case .string(let key) = value {
          self.key(key)
          continue
        }
        beginArray()
      default: break
      }
      var closesPair = false
      if case .value = label { closesPair = isInPair }
      if case .enumeration(_, let name, let fields) = value, fields.isEmpty {
        walk.skipChildren()
        self.value(name)
        if closesPair { end() }
      } else if value.childCount != nil {
        opened.append(Opened(isPairs: begin(value), closesPair: closesPair))
      } else {
        scalar(value)
        if closesPair { end() }
      }
    }
  }

  /// Begins a value that has others inside; true for a list of pairs.
  private mutating func begin(_ value: ArchiveValue) -> Bool {
    switch value {
    case .structure: beginObject()
    case .enumeration(_, let name, _):
      beginObject()
      key("$case")
      self.value(name)
    case .dictionary(let pairs):
      let hasNames = pairs.allSatisfy { if case .string = $0.key { true } else { false } }
      if hasNames { beginObject() } else { beginArray() }
      return !hasNames
    default: beginArray()
    }
    return false
  }

  private mutating func scalar(_ value: ArchiveValue) {
    switch value {
    case .none: null()
    case .bool(let value): self.value(value)
    case .integer(let value): self.value(value)
    case .unsigned(let value): self.value(value)
    case .number(let value): self.value(value)
    case .string(let text), .url(let text), .decimal(let text): self.value(text)
    case .data(let data): self.value(data.base64EncodedString())
    case .date(let date): if let text = ValueLine.iso(date) { self.value(text) } else { self.value(date.timeIntervalSinceReferenceDate) }
    case .uuid(let uuid): self.value(uuid.uuidString)
    case .reference(let number):
      beginObject()
      key("$ref")
      self.value(number)
      end()
    case .vector, .array, .set, .dictionary, .structure, .enumeration: self.value(value)
    }
  }
}
