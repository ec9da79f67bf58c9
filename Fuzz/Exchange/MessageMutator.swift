/// Random bits from a seed (SplitMix64).
package struct SeededBits: RandomNumberGenerator {
  private var state: UInt64

  package init(state: UInt64) { self.state = state }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  mutating func below(_ limit: Int) -> Int { limit > 0 ? Int(next() % UInt64(limit)) : 0 }
}

/// Alters messages: mostly a value of the JSON, so that what results is JSON again and gets past the decoder's first
/// look; sometimes the bytes, wherever they are.
package struct MessageMutator {
  private static let edges: [String] = [
    "null", "true", "false", "{}", "[]", "\"\"", "0", "-0", "-1", "1.5", "1e400", "1e-400", "18446744073709551615",
    "18446744073709551616", "9223372036854775807", "-9223372036854775808", "4611686018427387904",
    "4611686018427387905", "99999999999999999999999999999", "0.1", "[[[[[[]]]]]]", "\"\\u0000\"", "\"\\ud800\"",
    "\"\\ud83d\\ude00\"", "\"e\\u0301\"", "\"00000000000000000000000000000000\"", "\"ffffffffffffffff\"",
    "\"AQI=\"", "\"AQI\"", "{\"int\":-9223372036854775808}", "{\"double\":-0.0}", "{\"double\":5e-324}", "NaN", "01",
    "{\"optional\":null}", "{\"later\":[]}", "{\"counter\":[]}", "{\"dictionary\":[]}", "{\"set\":[]}",
  ]
  private static let bytesOfLength = 4

  private let form: MessageCheck.Form
  private var random: SeededBits

  package init(_ form: MessageCheck.Form, seed: UInt64) {
    self.form = form
    random = SeededBits(state: seed)
  }

  /// Returns an altered input: the byte of its kind, and its message.
  ///
  /// - Parameters:
  ///   - other: Another input, from which a value may be taken.
  ///   - bytes: Alters bytes without looking at them.
  package mutating func altered(_ input: [UInt8], with other: [UInt8], bytes: ([UInt8]) -> [UInt8]) -> [UInt8] {
    let choice = random.below(32)
    guard choice > 3, let (start, end) = json(of: input) else { return bytes(input) }
    var text = Array(input[start..<end])
    var tail = Array(input[end...])
    for _ in 0..<(1 + random.below(3)) {
      if choice < 7, !tail.isEmpty {
        // The frames behind the JSON.
        tail = bytes(tail)
      } else {
        text = alteredValue(text, other)
      }
    }
    var result = Array(input[..<start])
    if form == .exchangeBody {
      for byte in 0..<Self.bytesOfLength {
        result[result.count - 1 - byte] = UInt8(truncatingIfNeeded: text.count >> (8 * byte))
      }
    }
    result += text
    result += tail
    return result
  }

  /// Alters some bytes, for those who have no fuzzer.
  package mutating func alteredBytes(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<(1 + random.below(4)) {
      let place = random.below(bytes.count + 1)
      switch random.below(4) {
      case 0: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: place)
      case 1: bytes.removeSubrange(place..<min(bytes.count, place + 1 + random.below(8)))
      case 2: if place < bytes.count { bytes[place] ^= 1 << UInt8(random.below(8)) }
      default: if place < bytes.count { bytes[place] = UInt8(truncatingIfNeeded: random.next()) }
      }
    }
    return bytes
  }

  /// Where the JSON of an input is.
  private func json(of input: [UInt8]) -> (start: Int, end: Int)? {
    guard form == .exchangeBody else { return input.isEmpty ? nil : (1, input.count) }
    let start = 1 + Self.bytesOfLength
    guard input.count >= start else { return nil }
    let length = input[1..<start].reduce(0) { $0 << 8 | Int($1) }
    return length <= input.count - start ? (start, start + length) : nil
  }

  private mutating func alteredValue(_ text: [UInt8], _ other: [UInt8]) -> [UInt8] {
    let values = Self.values(in: text)
    guard let value = values.randomElement(using: &random) else { return text }
    let old = Array(text[value])
    var new: [UInt8]
    switch random.below(9) {
    case 0, 1: new = Array(Self.edges[random.below(Self.edges.count)].utf8)
    case 2, 3:
      new = values.randomElement(using: &random).map { Array(text[$0]) } ?? old
    case 4:
      let start = json(of: other)
      let donor = start.map { Array(other[$0.start..<$0.end]) } ?? []
      new = Self.values(in: donor).randomElement(using: &random).map { Array(donor[$0]) } ?? old
    case 5:
      // The value once more, as the next element of its list: or what no object has.
      new = old
      for _ in 0..<(1 + random.below(3)) { new += Array(",".utf8) + old }
    case 6: return removing(value, from: text)
    case 7: new = Array("[".utf8) + old + Array("]".utf8)
    default:
      new = old
      // A number or a text, altered within.
      if new.count > 2 { new[1 + random.below(new.count - 2)] = UInt8(0x20 + random.below(0x60)) }
    }
    return Array(text[..<value.lowerBound]) + new + Array(text[value.upperBound...])
  }

  /// Removes a value with the key before it, and a comma beside it.
  private func removing(_ value: Range<Int>, from text: [UInt8]) -> [UInt8] {
    var (start, end) = (value.lowerBound, value.upperBound)
    if start > 1, text[start - 1] == UInt8(ascii: ":") {
      // Back over the key.
      start -= 2
      while start > 0, text[start - 1] != UInt8(ascii: "\"") { start -= 1 }
      start = max(0, start - 1)
    }
    if end < text.count, text[end] == UInt8(ascii: ",") {
      end += 1
    } else if start > 0, text[start - 1] == UInt8(ascii: ",") {
      start -= 1
    }
    return Array(text[..<start]) + Array(text[end...])
  }

  /// Where the values of a JSON text are, those within others too; keys are none.
  private static func values(in text: [UInt8]) -> [Range<Int>] {
    var found: [Range<Int>] = []
    var open: [Int] = []
    var index = 0
    while index < text.count {
      let start = index
      switch text[index] {
      case UInt8(ascii: "\""):
        index += 1
        while index < text.count, text[index] != UInt8(ascii: "\"") {
          index += text[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        index = min(index + 1, text.count)
        if index >= text.count || text[index] != UInt8(ascii: ":") { found.append(start..<index) }
      case UInt8(ascii: "["), UInt8(ascii: "{"):
        open.append(index)
        index += 1
      case UInt8(ascii: "]"), UInt8(ascii: "}"):
        index += 1
        if let start = open.popLast() { found.append(start..<index) }
      case UInt8(ascii: ","), UInt8(ascii: ":"):
        index += 1
      default:
        while index < text.count, !Self.ends(text[index]) { index += 1 }
        index = max(index, start + 1)
        found.append(start..<index)
      }
    }
    return found
  }

  private static func ends(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "]"), UInt8(ascii: "}"), UInt8(ascii: "["),
      UInt8(ascii: "{"), UInt8(ascii: "\""):
      true
    default: false
    }
  }
}
