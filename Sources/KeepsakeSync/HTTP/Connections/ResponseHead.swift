import Foundation

/// The head of a response, which comes line by line.
struct ResponseHead {
  enum Step: Equatable {
    case more
    case complete(status: Int, fields: [String: String])
    /// It is too long, or its first line isn't one of HTTP. So may be what follows a body.
    case invalid
  }
  /// The most bytes of a head, together with those of interim responses before it and of what follows the body.
  static let limit = 64 << 10
  /// The most fields of a head.
  static let fieldLimit = 200

  private var length = 0
  private var status = 0
  private var fields: [String: String] = [:]
  private var isComplete = false

  /// Takes the next line, with its end. What comes after the head is ignored: it belongs to the body's end.
  mutating func take(_ line: String) -> Step {
    length += line.utf8.count
    guard length <= Self.limit else { return .invalid }
    guard !isComplete else { return .more }
    let text = line.trimmingCharacters(in: .whitespacesAndNewlines)
    if text.isEmpty {
      // An interim response precedes the one that counts. Another protocol, which nobody asked for, doesn't.
      if (100..<200).contains(status), status != 101 { return .more }
      isComplete = true
      return .complete(status: status, fields: fields)
    }
    if text.hasPrefix("HTTP/") {
      let words = text.split(separator: " ", maxSplits: 2)
      guard words.count > 1, let status = Int(words[1]), (100..<1000).contains(status) else { return .invalid }
      (self.status, fields) = (status, [:])
    } else if let colon = text.firstIndex(of: ":") {
      let name = String(text[..<colon])
      let value = text[text.index(after: colon)...].trimmingCharacters(in: .whitespaces)
      guard fields.count < Self.fieldLimit else { return .invalid }
      let known = fields.keys.first { $0.caseInsensitiveCompare(name) == .orderedSame }
      fields[known ?? name] = known.flatMap { fields[$0] }.map { $0 + ", " + value } ?? value
    }
    return .more
  }
}
