#if Cloud
extension CommandFailure {
  /// Words with which sentences begin, and which are no names.
  private static let beginnings: Set<Substring> = [
    "A", "An", "Another", "It", "No", "Only", "The", "There", "This", "Too", "What", "Where",
  ]

  /// Writes the sentence of a server, which has a capital letter, a full stop and perhaps advice, as all commands write
  /// messages: a clause, and the advice for itself.
  mutating func makeClause() {
    if let word = message.split(separator: " ").first, Self.beginnings.contains(word) {
      message = message.prefix(1).lowercased() + message.dropFirst()
    }
    if message.hasSuffix("."), !message.dropLast().contains(". ") { message.removeLast() }
    // Such as "...: run `keepsake serve` once".
    guard next == nil, message.hasSuffix("`") || message.hasSuffix("` once"),
      let colon = message.ranges(of: ": ").last, message[colon.upperBound...].contains("`keepsake ")
    else {
      return
    }
    next = message[colon.upperBound...].filter { $0 != "`" }
    message = String(message[..<colon.lowerBound])
  }
}
#endif
