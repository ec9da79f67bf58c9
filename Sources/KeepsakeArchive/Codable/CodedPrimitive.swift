import Foundation

/// A type that stands in a coded tree as one value, rather than by its own `encode(to:)`.
protocol CodedPrimitive {
  var codedLeaf: CodedLeaf { get }
  /// nil if the saved value is no such one.
  init?(_ leaf: CodedLeaf)
  /// Its own `init(from:)` may know other forms, such as a URL's base and relative part.
  static var hasOtherForms: Bool { get }
  static var isNumber: Bool { get }
}

extension CodedPrimitive {
  static var hasOtherForms: Bool { false }
  static var isNumber: Bool { false }
}

/// An integer, for which the methods are all the same.
protocol CodedInteger: CodedPrimitive, FixedWidthInteger {}

extension CodedInteger {
  var codedLeaf: CodedLeaf { CodedLeaf(self) }
  static var isNumber: Bool { true }
  init?(_ leaf: CodedLeaf) {
    guard let value = leaf.integer(Self.self) else { return nil }
    self = value
  }
}

extension Int: CodedInteger {}
extension Int8: CodedInteger {}
extension Int16: CodedInteger {}
extension Int32: CodedInteger {}
extension Int64: CodedInteger {}
extension Int128: CodedInteger {}
extension UInt: CodedInteger {}
extension UInt8: CodedInteger {}
extension UInt16: CodedInteger {}
extension UInt32: CodedInteger {}
extension UInt64: CodedInteger {}
extension UInt128: CodedInteger {}

extension Bool: CodedPrimitive {
  var codedLeaf: CodedLeaf { .bool(self) }
  init?(_ leaf: CodedLeaf) {
    guard case .bool(let value) = leaf else { return nil }
    self = value
  }
}

extension Double: CodedPrimitive {
  var codedLeaf: CodedLeaf { .double(self) }
  static var isNumber: Bool { true }
  init?(_ leaf: CodedLeaf) {
    guard let value = leaf.double else { return nil }
    self = value
  }
}

extension Float: CodedPrimitive {
  var codedLeaf: CodedLeaf { .float(self) }
  static var isNumber: Bool { true }

  /// A loss of digits is no error, a finite number beyond the range is.
  init?(_ leaf: CodedLeaf) {
    // Not by way of Double, which would make signalling NaNs quiet.
    if case .float(let value) = leaf {
      self = value
      return
    }
    guard let value = leaf.double else { return nil }
    self.init(value)
    if !isFinite && value.isFinite { return nil }
  }
}

extension String: CodedPrimitive {
  var codedLeaf: CodedLeaf { .string(self) }
  init?(_ leaf: CodedLeaf) {
    switch leaf {
    case .string(let text), .url(let text): self = text
    case .uuid(let uuid): self = uuid.uuidString
    default: return nil
    }
  }
}

extension Data: CodedPrimitive {
  var codedLeaf: CodedLeaf { .data(self) }
  static var hasOtherForms: Bool { true }
  init?(_ leaf: CodedLeaf) {
    guard case .data(let data) = leaf else { return nil }
    self = data
  }
}

extension Date: CodedPrimitive {
  var codedLeaf: CodedLeaf { .date(self) }
  init?(_ leaf: CodedLeaf) {
    guard let seconds = leaf.double else { return nil }
    self.init(timeIntervalSinceReferenceDate: seconds)
  }
}

extension UUID: CodedPrimitive {
  var codedLeaf: CodedLeaf { .uuid(self) }
  init?(_ leaf: CodedLeaf) {
    switch leaf {
    case .uuid(let uuid): self = uuid
    case .string(let text): self.init(uuidString: text)
    default: return nil
    }
  }
}

extension URL: CodedPrimitive {
  /// What a relative URL is relative to is not kept apart, as in the archive elsewhere.
  var codedLeaf: CodedLeaf { .url(absoluteString) }
  static var hasOtherForms: Bool { true }
  init?(_ leaf: CodedLeaf) {
    switch leaf {
    case .url(let text), .string(let text): self.init(string: text)
    default: return nil
    }
  }
}

extension Decimal: CodedPrimitive {
  var codedLeaf: CodedLeaf { .decimal(self) }
  static var hasOtherForms: Bool { true }
  static var isNumber: Bool { true }

  /// A binary fraction is taken by its shortest digits, as if it had come through JSON.
  init?(_ leaf: CodedLeaf) {
    switch leaf {
    case .decimal(let value): self = value
    case .integer(let value): self.init(value)
    case .unsigned(let value): self.init(value)
    case .double(let value) where value.isFinite: self.init(string: "\(value)")
    case .float(let value) where value.isFinite: self.init(string: "\(value)")
    default: return nil
    }
  }
}
