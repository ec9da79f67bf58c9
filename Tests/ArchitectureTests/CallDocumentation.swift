import Foundation

/// What a function, an initialiser or a subscript takes, returns and throws, as its declaration says.
struct CallSignature: Equatable {
  /// The names of the parameters in the body, in order, without those that are `_`.
  var parameters: [String]
  /// Whether it returns anything but Void.
  var doesReturn: Bool
  var doesThrow: Bool

  /// - Parameter text: The declaration from behind its keyword on, without comments and the contents of strings.
  init(_ text: Substring) {
    parameters = SwiftText.parameters(in: text)
    let rest = text.firstIndex(of: "(").map { SwiftText.afterParentheses(text[$0...]) } ?? ""
    let effects = /\s*(?:async\b\s*)?(?<errors>(?:re)?throws\b(?:\s*\([^)]*\))?)?\s*(?:->\s*(?<result>[^\s{]+))?/
    let match = rest.prefixMatch(of: effects)
    doesThrow = match?.errors != nil
    let result = match?.result
    doesReturn = result != nil && result != "Void" && result != "()" && result != "Never"
  }
}

/// The standard blocks of a documentation comment.
struct DocumentationBlocks: Equatable {
  /// The names that `- Parameter name:` and the list under `- Parameters:` describe, in order.
  private(set) var parameters: [String] = []
  private(set) var hasReturns = false
  private(set) var hasThrows = false

  /// - Parameter lines: The lines of the comment without their slashes.
  init(_ lines: [String]) {
    var isInList = false
    for line in lines {
      if isInList, let item = line.firstMatch(of: /^   - (?<name>\w+):/) {
        parameters.append(String(item.name))
        continue
      }
      // What continues an item is indented further.
      if isInList, line.hasPrefix("     ") { continue }
      isInList = line.hasPrefix(" - Parameters:")
      if let single = line.firstMatch(of: /^ - Parameter (?<name>\w+):/) { parameters.append(String(single.name)) }
      if line.hasPrefix(" - Returns:") { hasReturns = true }
      if line.hasPrefix(" - Throws:") { hasThrows = true }
    }
  }

  /// Returns what the comment doesn't describe of a call, and what it describes although the call doesn't have it.
  func differences(from call: CallSignature) -> [String] {
    var found: [String] = []
    for name in call.parameters where !parameters.contains(name) { found.append("doesn't describe \(name)") }
    for name in parameters where !call.parameters.contains(name) { found.append("describes no parameter: \(name)") }
    if call.doesReturn, !hasReturns { found.append("has no Returns") }
    if !call.doesReturn, hasReturns { found.append("has a needless Returns") }
    if call.doesThrow, !hasThrows { found.append("has no Throws") }
    if !call.doesThrow, hasThrows { found.append("has a needless Throws") }
    return found
  }
}
