import GRDB

extension Row {
  /// Returns the value of a column that must not be NULL. Throws `damaged` for NULL or another type, where GRDB's
  /// subscript would trap.
  func checked<Value: DatabaseValueConvertible>(_ column: String) throws -> Value {
    guard let value: Value = try checkedOptional(column) else {
      throw StoreError(.damaged, "a row of the store lacks its \(column)")
    }
    return value
  }

  /// Returns the value of a column, nil for NULL. Throws `damaged` if it has another type.
  func checkedOptional<Value: DatabaseValueConvertible>(_ column: String) throws -> Value? {
    try Self.checked(self[column], column)
  }

  /// Like `checked(_:)`, by the column's index: finding a column by name takes longer than reading it.
  func checked<Value: DatabaseValueConvertible>(at index: Int, _ column: String) throws -> Value {
    guard let value: Value = try checkedOptional(at: index, column) else {
      throw StoreError(.damaged, "a row of the store lacks its \(column)")
    }
    return value
  }

  func checkedOptional<Value: DatabaseValueConvertible>(at index: Int, _ column: String) throws -> Value? {
    try Self.checked(self[index], column)
  }

  /// Decodes through an existential, which takes half the time of decoding a generic value.
  private static func checked<Value: DatabaseValueConvertible>(
    _ stored: (any DatabaseValueConvertible)?, _ column: String
  ) throws -> Value? {
    guard let stored else { return nil }
    guard let value = Value.fromDatabaseValue(stored.databaseValue) else {
      throw StoreError(.damaged, "a row of the store has a \(column) of the wrong type")
    }
    return value
  }
}
