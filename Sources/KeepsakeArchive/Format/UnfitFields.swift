// What generated code calls for a property or payload whose type doesn't fit: the overloads below are chosen only then.
// Listing the property, or writing the payload, is a compile-time error, which says what to do. Everything else
// compiles, so that there is one error for each property, and not one for each place where the property is used. None
// of it is ever run: such a program doesn't compile.
//
// Hidden from the documentation: a game never calls them. Their names have to be those of the members that they stand
// for.

extension ArchiveFieldList {
  /// Rejects a property at compile time whose type isn't archivable.
  @_documentation(visibility: internal)
  @_disfavoredOverload
  @available(
    *, unavailable,
    message: """
      The type of this property isn't archivable: mark the type (or that of its elements) @Archivable, or the property \
      @Coded if its type is Codable, or @Unsaved
      """
  )
  public func field<T>(_ key: String, _ type: T.Type, deferrable: Bool = false) {}

  /// Rejects a property at compile time whose inferred type isn't archivable.
  @_documentation(visibility: internal)
  @_disfavoredOverload
  @available(
    *, unavailable,
    message: """
      The type of this property isn't archivable: mark the type (or that of its elements) @Archivable, or the property \
      @Coded if its type is Codable, or @Unsaved
      """
  )
  public func field<Root, T>(_ key: String, deferrable: Bool = false, _ get: (Root) -> T) {}

  /// Rejects a property marked `@Coded` at compile time whose type isn't `Codable`.
  @_documentation(visibility: internal)
  @_disfavoredOverload
  @available(
    *, unavailable,
    message: "@Coded needs a type that is Codable: make the type Codable, or mark the property @Unsaved"
  )
  public func codedField<T>(_ key: String, _ type: T.Type) {}

  /// Rejects a property marked `@Coded` at compile time whose inferred type isn't `Codable`.
  @_documentation(visibility: internal)
  @_disfavoredOverload
  @available(
    *, unavailable,
    message: "@Coded needs a type that is Codable: make the type Codable, or mark the property @Unsaved"
  )
  public func codedField<Root, T>(_ key: String, _ get: (Root) -> T) {}

  /// Stands for listing a payload whose type isn't archivable: writing it is the error, because the compiler checks a
  /// macro's members of an enum only when it generates code. Lists nothing. For generated code.
  ///
  /// - Parameters:
  ///   - key: The field's label or position.
  ///   - type: The field's type.
  @_documentation(visibility: internal)
  @_disfavoredOverload public func payload<T>(_ key: String, _ type: T.Type) {}

  /// Stands for the name in archives of a generic argument that isn't archivable. For generated code.
  ///
  /// - Parameter type: The generic argument.
  /// - Returns: The type's name.
  @_documentation(visibility: internal)
  @_disfavoredOverload public static func name<T>(of type: T.Type) -> String { "\(type)" }
}

extension ArchiveError {
  /// For calls that are written by hand: in generated code, listing the field is a compile-time error.
  fileprivate static func unfit<T>(_ type: T.Type) -> ArchiveError {
    ArchiveError(.unsupported, "\(type) isn't archivable, or for @Coded not Codable")
  }
}

extension ArchiveWriter {
  /// Stands for writing a field whose type isn't archivable. For generated code.
  ///
  /// - Parameter value: The field's value.
  /// - Throws: `ArchiveError` with `unsupported`, always.
  @_documentation(visibility: internal)
  @_disfavoredOverload public mutating func writeField<T>(_ value: T) throws { throw ArchiveError.unfit(T.self) }

  /// Rejects a payload at compile time whose type isn't archivable.
  @_documentation(visibility: internal)
  @_disfavoredOverload
  @available(
    *, unavailable,
    message: """
      The type of this payload isn't archivable: mark the type (or that of its elements) @Archivable, or write \
      Coded<...> around it if it is Codable
      """
  )
  public mutating func writePayload<T>(_ value: T) throws {}

  /// Stands for writing a property marked `@Coded` whose type isn't `Codable`. For generated code.
  ///
  /// - Parameter value: The property's value.
  /// - Throws: `ArchiveError` with `unsupported`, always.
  @_documentation(visibility: internal)
  @_disfavoredOverload public mutating func writeCodedField<T>(_ value: T) throws { throw ArchiveError.unfit(T.self) }

  /// Stands for writing a weak reference to a class that isn't archivable. For generated code.
  ///
  /// - Parameter object: The object, or nil.
  /// - Throws: `ArchiveError` with `unsupported`, always.
  @_documentation(visibility: internal)
  @_disfavoredOverload public mutating func writeWeakField<T: AnyObject>(_ object: T?) throws {
    throw ArchiveError.unfit(T.self)
  }

  /// Stands for writing an unowned reference to a class that isn't archivable. For generated code.
  ///
  /// - Parameter object: The object.
  /// - Throws: `ArchiveError` with `unsupported`, always.
  @_documentation(visibility: internal)
  @_disfavoredOverload public mutating func writeUnownedField<T: AnyObject>(_ object: T) throws {
    throw ArchiveError.unfit(T.self)
  }
}

extension ArchiveReader {
  /// Stands for reading a field whose type isn't archivable. For generated code.
  ///
  /// - Returns: Never.
  /// - Throws: `ArchiveError` with `unsupported`, always.
  @_documentation(visibility: internal)
  @_disfavoredOverload public mutating func readField<T>() throws -> T { throw ArchiveError.unfit(T.self) }

  /// Stands for reading a field by its index whose type isn't archivable. For generated code.
  ///
  /// - Parameters:
  ///   - index: The field's index in its own struct, class or case, from 0.
  ///   - fields: What `enter` or `enterCase` returned.
  /// - Returns: Never.
  /// - Throws: `ArchiveError` with `unsupported`, always.
  @_documentation(visibility: internal)
  @_disfavoredOverload public mutating func field<T>(_ index: Int, _ fields: inout ArchiveFields) throws -> T {
    throw ArchiveError.unfit(T.self)
  }

  /// Stands for reading a payload with a default whose type isn't archivable. For generated code.
  ///
  /// - Parameters:
  ///   - index: The field's index in its case, from 0.
  ///   - fields: What `enterCase` returned.
  ///   - value: The default.
  /// - Returns: Never.
  /// - Throws: `ArchiveError` with `unsupported`, always.
  @_documentation(visibility: internal)
  @_disfavoredOverload public mutating func field<T>(
    _ index: Int, _ fields: inout ArchiveFields, default value: @autoclosure () throws -> T
  ) throws -> T { throw ArchiveError.unfit(T.self) }

  /// Stands for reading an optional payload whose type isn't archivable. For generated code.
  ///
  /// - Parameters:
  ///   - index: The field's index in its case, from 0.
  ///   - fields: What `enterCase` returned.
  ///   - value: The default.
  /// - Returns: Never.
  /// - Throws: `ArchiveError` with `unsupported`, always.
  @_documentation(visibility: internal)
  @_disfavoredOverload public mutating func field<T>(
    _ index: Int, _ fields: inout ArchiveFields, ifAbsent value: @autoclosure () throws -> T
  ) throws -> T { throw ArchiveError.unfit(T.self) }
}

extension ArchiveReader {
  /// Stands for reading a property marked `@Coded` whose type isn't `Codable`. For generated code.
  ///
  /// - Returns: Never.
  /// - Throws: `ArchiveError` with `unsupported`, always.
  @_documentation(visibility: internal)
  @_disfavoredOverload public mutating func readCodedField<T>() throws -> T { throw ArchiveError.unfit(T.self) }

  /// Stands for reading a property marked `@Coded` by its index whose type isn't `Codable`. For generated code.
  ///
  /// - Parameters:
  ///   - index: The field's index in its own struct or class, from 0.
  ///   - fields: What `enter` returned.
  /// - Returns: Never.
  /// - Throws: `ArchiveError` with `unsupported`, always.
  @_documentation(visibility: internal)
  @_disfavoredOverload public mutating func codedField<T>(_ index: Int, _ fields: inout ArchiveFields) throws -> T {
    throw ArchiveError.unfit(T.self)
  }
}

extension MergeFields {
  /// Stands for merging a property marked `@Coded` whose type isn't `Codable`. Does nothing. For generated code.
  ///
  /// - Parameters:
  ///   - value: This side's value.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common.
  @_documentation(visibility: internal)
  @_disfavoredOverload public static func coded<T>(_ value: inout T, _ other: T, _ ancestor: T?) {}

  /// Stands for merging a property whose type isn't archivable. Does nothing. For generated code.
  ///
  /// - Parameters:
  ///   - value: This side's value.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common.
  @_documentation(visibility: internal)
  @_disfavoredOverload public static func unmarked<T>(_ value: inout T, _ other: T, _ ancestor: T?) {}

  /// Stands for merging a property with `@Merge` alone whose type isn't archivable. Does nothing. For generated code.
  ///
  /// - Parameters:
  ///   - value: This side's value.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common.
  @_documentation(visibility: internal)
  @_disfavoredOverload public static func fields<T>(_ value: inout T, _ other: T, _ ancestor: T?) {}

  /// Stands for looking for rules in a property whose type isn't archivable. For generated code.
  ///
  /// - Parameter property: A closure that returns the property. It isn't called.
  /// - Returns: False.
  @_documentation(visibility: internal)
  @_disfavoredOverload public static func hasRules<Root, T>(_ property: (Root) -> T) -> Bool { false }
}
