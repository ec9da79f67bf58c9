// How a hand-written type writes its fields, each under a key.
extension ArchiveWriter {
  /// Writes a value under a key, for hand-written types. Each key may be written once; the reader may read keys in any
  /// order.
  ///
  /// An error ends the encoding even if it is caught, because only a part of the value may have been written.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The field's key.
  /// - Throws: `ArchiveError` with `unsupported` if the conformance that writes is generated, and what writing the
  ///   value throws, such as `unlistedClass` or `limit`.
  public mutating func encode<T: Archivable>(_ value: T, forKey key: String) throws {
    try write(T.self, forKey: key) { try T.archiveWrite(value, to: &$0) }
  }

  /// Writes a reference under a key. It is kept only if the object is also saved through another reference.
  ///
  /// Read it as an optional, as in `decode(Hero?.self, forKey: "hero")`: it is nil if the object wasn't saved. In a
  /// class it belongs in `encodeReferences(to:)`: what `init(from:)` reads is also nil if the object isn't built yet.
  ///
  /// - Parameters:
  ///   - object: The object, or nil.
  ///   - key: The field's key.
  /// - Throws: `ArchiveError` with `unsupported` or `limit`, as `encode(_:forKey:)`.
  public mutating func encodeConditional<T: Archivable & AnyObject>(_ object: T?, forKey key: String) throws {
    try write(T?.self, forKey: key) { try $0.writeWeakField(object) }
  }

  private mutating func write<T: Archivable>(
    _ type: T.Type, forKey key: String, _ body: (inout ArchiveWriter) throws -> Void
  ) throws {
    do {
      guard isInKeyed else { throw misuse() }
      if fingerprints > 0 {
        // Keys and types get their numbers when the element is finally written.
        referencesInFingerprint += 1
        try putText(key)
        try putText(T.archiveName)
      } else {
        putVarint(UInt64(try core.nameIndex(key)) + 1)
        putVarint(UInt64(try core.wireIndex(type)))
      }
      try writeMeasured(body)
    } catch {
      core.failed(error)
      throw error
    }
  }

  private func misuse() -> ArchiveError {
    ArchiveError(.unsupported, "encode(_:forKey:) is for hand-written conformances; this type's fields were generated")
  }

  private mutating func writeMeasured(_ body: (inout ArchiveWriter) throws -> Void) throws {
    putFixed(UInt32(0))
    let start = offset
    let outer = isInKeyed
    isInKeyed = false
    defer { isInKeyed = outer }
    try body(&self)
    guard let length = UInt32(exactly: offset - start) else {
      throw ArchiveError(.limit, "A value under a key takes more than 4 GiB")
    }
    (base + start - 4).storeBytes(of: length.littleEndian, as: UInt32.self)
  }

  /// Writes the key, type, length and value of each field, then a zero.
  mutating func writeKeyedBody(_ body: (inout ArchiveWriter) throws -> Void) throws {
    let outer = isInKeyed
    isInKeyed = true
    try descend()
    try body(&self)
    ascend()
    isInKeyed = outer
    putVarint(0)
  }

  @usableFromInline mutating func writeKeyed<T: Archivable>(_ value: T) throws {
    try writeKeyedBody { try value.encode(to: &$0) }
  }
}
