extension SchemaComparison {
  /// Returns whether some value of the saved type can be read as the program's type; false only if that is certainly
  /// impossible.
  ///
  /// For a named type, only its kind is compared: the contents have their own version and hook. Recursive only along
  /// one expression, whose nesting is limited when it is parsed.
  func fits(_ saved: Int32, _ own: Int32) -> Bool {
    let left = file.nodes[Int(saved)]
    let right = program.nodes[Int(own)]
    if right.code == .optional { return fits(left.code == .optional ? left.first : saved, right.first) }
    if left.code == .optional { return fits(left.first, own) }
    switch (left.code, right.code) {
    case (.array, .array), (.set, .set): return fits(left.first, right.first)
    case (.dictionary, .dictionary): return fits(left.first, right.first) && fits(left.second, right.second)
    case (.named, .named):
      let (x, y) = (file.types[Int(left.first)].kind, program.types[Int(right.first)].kind)
      guard x.isObject == y.isObject else { return false }
      return x.isKeyed || y.isKeyed || (x == .enumeration) == (y == .enumeration)
    default: break
    }
    guard let x = Family(left.code), let y = Family(right.code) else { return true }
    // A number with a fraction is never read as an integer, whatever its value.
    return x == y || (x == .integer && y == .fraction)
  }

  /// Kinds of layouts that are never read as each other. A code that isn't listed here is left for the reader to
  /// decide.
  private enum Family {
    case bool, integer, fraction, text, data, date, uuid, url, array, set, dictionary, vector, named

    init?(_ code: WireCode) {
      switch code {
      case .bool: self = .bool
      case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32, .uint64: self = .integer
      case .float, .double: self = .fraction
      case .string: self = .text
      case .data: self = .data
      case .date: self = .date
      case .uuid: self = .uuid
      case .url: self = .url
      case .array: self = .array
      case .set: self = .set
      case .dictionary: self = .dictionary
      case .vector: self = .vector
      case .named: self = .named
      default: return nil
      }
    }
  }
}
