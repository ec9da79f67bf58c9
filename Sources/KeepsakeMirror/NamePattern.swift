/// One component of a path, as a literal or with wildcards: `*` for any characters, `?` for one, `[a-c]` and `[!a-c]`
/// for one of a set; `**` as a whole component is any number of folders.
///
/// Compared scalar by scalar, and case counts. Matching takes at most the product of both lengths.
package enum NamePattern: Hashable, Sendable {
  case literal(String)
  case wild([Part])
  /// Any number of components, also none.
  case anyDepth

  package enum Part: Hashable, Sendable {
    case one(Unicode.Scalar)
    case anyOne
    case anyMany
    /// One of these ranges or, if `inverted`, none of them.
    case set([ClosedRange<Unicode.Scalar>], inverted: Bool)

    func matches(_ scalar: Unicode.Scalar) -> Bool {
      switch self {
      case .one(let wanted): wanted == scalar
      case .anyOne, .anyMany: true
      case .set(let ranges, let inverted): ranges.contains { $0.contains(scalar) } != inverted
      }
    }
  }

  /// Reads a component. A `[` that no `]` follows stands for itself, as does a first `]` in a set.
  package init(_ text: String) {
    guard text != "**" else {
      self = .anyDepth
      return
    }
    let scalars = Array(text.unicodeScalars)
    var parts: [Part] = []
    var place = 0
    while place < scalars.count {
      switch scalars[place] {
      case "*":
        if parts.last != .anyMany { parts.append(.anyMany) }
      case "?": parts.append(.anyOne)
      case "[":
        if let (set, end) = Self.set(in: scalars, from: place + 1) {
          parts.append(set)
          place = end
        } else {
          parts.append(.one("["))
        }
      case let scalar: parts.append(.one(scalar))
      }
      place += 1
    }
    let literal = parts.compactMap { part in if case .one(let scalar) = part { scalar } else { nil } }
    if literal.count == parts.count {
      var view = String.UnicodeScalarView()
      view.append(contentsOf: literal)
      self = .literal(String(view))
    } else {
      self = .wild(parts)
    }
  }

  /// Returns the set that begins after its bracket, and where its closing bracket is.
  private static func set(in scalars: [Unicode.Scalar], from start: Int) -> (Part, Int)? {
    var place = start
    let inverted = place < scalars.count && scalars[place] == "!"
    if inverted { place += 1 }
    var ranges: [ClosedRange<Unicode.Scalar>] = []
    while place < scalars.count {
      let first = scalars[place]
      if first == "]", !ranges.isEmpty { return (.set(ranges, inverted: inverted), place) }
      if place + 2 < scalars.count, scalars[place + 1] == "-", scalars[place + 2] != "]", first <= scalars[place + 2] {
        ranges.append(first...scalars[place + 2])
        place += 3
      } else {
        ranges.append(first...first)
        place += 1
      }
    }
    return nil
  }

  /// Whether this is the name of one component only.
  package var literalName: String? {
    if case .literal(let name) = self { name } else { nil }
  }

  /// Whether the pattern matches a whole component. `**` matches every one.
  func matches(_ name: String) -> Bool {
    switch self {
    case .anyDepth: return true
    // By bytes: a string's own comparison takes two spellings of the same letter for one.
    case .literal(let wanted): return wanted.utf8.elementsEqual(name.utf8)
    case .wild(let parts): return Self.matches(parts, Array(name.unicodeScalars))
    }
  }

  private static func matches(_ parts: [Part], _ scalars: [Unicode.Scalar]) -> Bool {
    var (part, place) = (0, 0)
    // Where the last `*` is, and what it has taken so far: only the last one ever has to take more.
    var star: (part: Int, place: Int)?
    while place < scalars.count {
      if part < parts.count, parts[part] == .anyMany {
        star = (part, place)
        part += 1
      } else if part < parts.count, parts[part].matches(scalars[place]) {
        part += 1
        place += 1
      } else if let last = star {
        star = (last.part, last.place + 1)
        (part, place) = (last.part + 1, last.place + 1)
      } else {
        return false
      }
    }
    return parts[part...].allSatisfy { $0 == .anyMany }
  }
}
