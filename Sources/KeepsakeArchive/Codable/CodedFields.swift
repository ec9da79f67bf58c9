// What generated code calls for a property marked `@Coded`.

extension ArchiveFieldList {
  /// Lists a field that is kept through `Codable`.
  ///
  /// - Parameters:
  ///   - key: The field's key in archives.
  ///   - type: The field's type.
  public func codedField<T: Codable>(_ key: String, _ type: T.Type) { field(key, Coded<T>.self) }

  /// Lists a field that is kept through `Codable`, and whose type is inferred from a closure.
  ///
  /// - Parameters:
  ///   - key: The field's key in archives.
  ///   - get: A closure that returns the property. It isn't called.
  public func codedField<Root, T: Codable>(_ key: String, _ get: (Root) -> T) { field(key, Coded<T>.self) }
}

extension ArchiveWriter {
  /// Writes the next field, through `Codable`.
  ///
  /// - Parameter value: The field's value.
  /// - Throws: What the type's `encode(to:)` throws, and `ArchiveError` if a limit is exceeded.
  @inlinable public mutating func writeCodedField<T: Codable>(_ value: T) throws { try writeField(Coded(value)) }
}

extension ArchiveReader {
  /// Reads the next field, through `Codable`. Only if the archive was written by an identical declaration.
  ///
  /// - Returns: The field's value.
  /// - Throws: `ArchiveError` if the saved value is damaged, and what the type's `init(from:)` throws.
  @inlinable public mutating func readCodedField<T: Codable>() throws -> T {
    let coded: Coded<T> = try readField()
    return coded.value
  }

  /// Reads a field by its index in the declaration, through `Codable`.
  ///
  /// - Parameters:
  ///   - index: The field's index in its own struct or class, from 0.
  ///   - fields: What `enter` returned.
  /// - Returns: The field's value.
  /// - Throws: `ArchiveError` with `missingField` if the archive has no value for the field, or if the saved value is
  ///   damaged, and what the type's `init(from:)` throws.
  @inlinable public mutating func codedField<T: Codable>(_ index: Int, _ fields: inout ArchiveFields) throws -> T {
    let coded: Coded<T> = try field(index, &fields)
    return coded.value
  }
}
