/// Checks at compile time that what a class lists as its subclasses inherits from it. For generated code.
public enum ArchiveSubclasses<Base: Archivable & AnyObject> {
  /// Returns a class that inherits from `Base`.
  ///
  /// - Parameter type: The class.
  /// - Returns: The class.
  public static func listed(_ type: Base.Type) -> any Archivable.Type { type }

  /// Rejects at compile time what isn't a subclass.
  @_disfavoredOverload
  @available(
    *, unavailable,
    message: "'subclasses:' lists classes that inherit from this one, such as [Boss.self]: this isn't one of them"
  )
  public static func listed<T>(_ type: T) -> any Archivable.Type { Bool.self }
}

/// Checks at compile time that what a generic class lists as its subclasses is archivable. For generated code.
public enum ArchiveClasses {
  /// Returns an archivable class.
  ///
  /// - Parameter type: The class.
  /// - Returns: The class.
  public static func listed(_ type: any Archivable.Type) -> any Archivable.Type { type }

  /// Rejects at compile time what isn't archivable.
  @_disfavoredOverload
  @available(
    *, unavailable,
    message: "'subclasses:' lists classes that inherit from this one, such as [Boss.self]: this isn't one of them"
  )
  public static func listed<T>(_ type: T) -> any Archivable.Type { Bool.self }
}
