import Foundation

/// Translates values that contain no other values.
extension ArchiveTranslation {
  /// - Parameter isInBlock: Whether the value is in an array or vector of numbers, where each takes its full width.
  mutating func scalar(_ code: WireCode, _ node: Int32, _ content: Content, _ place: Location, isInBlock: Bool) throws {
    if case .null = content { throw error(.missing, "Found nil where \(schema.text(node)) is expected") }
    switch code {
    case .bool:
      guard let value = bool(content) else { throw misfit(node, place) }
      out.append(value ? 1 : 0)
    case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32, .uint64:
      guard let value = Self.integer(content), Self.fits(value, code) else { throw misfit(node, place) }
      append(Int64(truncatingIfNeeded: value), code, isInBlock)
    case .int128, .uint128:
      guard let value = Self.integer(content), code == .int128 || value >= 0 else { throw misfit(node, place) }
      Self.append(value, to: &out)
    case .float:
      guard let value = Self.number(content), Float(value).isFinite || !value.isFinite else {
        throw misfit(node, place)
      }
      Self.append(Float(value).bitPattern, to: &out)
    case .double:
      guard let value = Self.number(content) else { throw misfit(node, place) }
      if !isInBlock { Varint.append(1, to: &out) }
      Self.append(value.bitPattern, to: &out)
    case .decimal:
      guard let value = Self.decimal(content) else { throw misfit(node, place) }
      let bytes = try DecimalBytes.make(value)
      Varint.append(UInt64(bytes.count), to: &out)
      out += bytes
    case .date:
      guard case .date(let date) = content else { throw misfit(node, place) }
      Self.append(date.timeIntervalSinceReferenceDate.bitPattern, to: &out)
    case .uuid:
      guard let uuid = Self.uuid(content) else { throw misfit(node, place) }
      withUnsafeBytes(of: uuid.uuid) { out += $0 }
    case .string, .url: try text(code, node, content, place)
    case .data:
      guard case .data(let data) = content else { throw misfit(node, place) }
      try append(data)
    default:
      throw error(
        .unsupported,
        """
        @Coded values can't be read from another format, because their type isn't known here: decode a Codable type, \
        or make it @Archivable
        """)
    }
  }

  private mutating func text(_ code: WireCode, _ node: Int32, _ content: Content, _ place: Location) throws {
    switch content {
    case .string(let text):
      // A text that isn't a URL would be reported as damage when it is read.
      guard code == .string || URL(string: text) != nil else { throw misfit(node, place) }
      try append(text.utf8)
    case .url(let text):
      guard code == .url, URL(string: text) != nil else { throw misfit(node, place) }
      try append(text.utf8)
    default: throw misfit(node, place)
    }
  }

  private mutating func append(_ bytes: some Collection<UInt8>) throws {
    guard source.take(bytes: bytes.count) else { throw tooMany() }
    Varint.append(UInt64(bytes.count), to: &out)
    out += bytes
  }

  private mutating func append(_ value: Int64, _ code: WireCode, _ isInBlock: Bool) {
    switch (code.scalarBytes, isInBlock, code.isSigned) {
    case (1, _, _): out.append(UInt8(truncatingIfNeeded: value))
    case (2, true, _): Self.append(Int16(truncatingIfNeeded: value), to: &out)
    case (4, true, _): Self.append(Int32(truncatingIfNeeded: value), to: &out)
    case (_, true, _): Self.append(value, to: &out)
    case (_, false, true): Varint.append(Self.zigzag(value), to: &out)
    case (_, false, false): Varint.append(UInt64(bitPattern: value), to: &out)
    }
  }

  private static func fits(_ value: Int128, _ code: WireCode) -> Bool {
    let bits = Int128(8 * code.scalarBytes)
    return code.isSigned ? value >= -(1 << (bits - 1)) && value < 1 << (bits - 1) : value >= 0 && value < 1 << bits
  }

  /// Returns a flag. Older programs saved flags as numbers, 0 or 1.
  private func bool(_ content: Content) -> Bool? {
    switch content {
    case .bool(let value): value
    case .integer(0): false
    case .integer(1): true
    default: nil
    }
  }

  private static func integer(_ content: Content) -> Int128? {
    switch content {
    case .bool(let value): value ? 1 : 0
    case .integer(let value): value
    case .number(let value): Int128(exactly: value)
    case .decimal(let digits): Int128(digits)
    default: nil
    }
  }

  private static func number(_ content: Content) -> Double? {
    switch content {
    case .integer(let value): Double(value)
    case .number(let value): value
    case .decimal(let digits): Double(digits)
    default: nil
    }
  }

  private static func decimal(_ content: Content) -> Decimal? {
    switch content {
    case .integer(let value): Decimal(string: "\(value)")
    case .number(let value): value.isFinite ? Decimal(string: "\(value)") : nil
    case .decimal(let digits): digits == "NaN" ? Decimal.nan : Decimal(string: digits)
    default: nil
    }
  }

  private static func uuid(_ content: Content) -> UUID? {
    switch content {
    case .uuid(let uuid): uuid
    case .string(let text): UUID(uuidString: text)
    default: nil
    }
  }
}
