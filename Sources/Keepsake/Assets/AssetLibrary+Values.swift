public import Foundation

/// Values that a game makes from its assets, such as a decoded image.
extension AssetLibrary {
  /// Returns the value that a function makes from an asset, cached by path and type until its memory is needed.
  ///
  /// ```swift
  /// let ship = try assets.value(for: "Images/Ship.png") { try Image(png: $0) }
  /// ```
  ///
  /// If two threads ask at the same time, both may decode, and both get the value of the one that finishes first.
  /// Values count against the budget and aren't pinned by batches; the game itself keeps those it needs for long.
  ///
  /// - Parameters:
  ///   - path: The asset.
  ///   - cost: The size of the value in bytes, if it differs from the file's: a decoded image is usually larger.
  ///   - decode: Makes the value. Runs on this thread, outside all locks.
  /// - Returns: The value.
  /// - Throws: `AssetError`, and any error that `decode` throws; nothing is cached then.
  public func value<Value: Sendable>(for path: String, cost: Int? = nil, decode: (Data) throws -> Value) throws -> Value
  {
    let number = try source.number(of: path)
    if let value = loader.value(of: number, Value.self) { return value }
    return loader.keep(try decode(try loader.bytes(of: number)), of: number, cost: cost)
  }

  /// Returns the value that a function makes from an asset, with the file read on one of the library's threads.
  ///
  /// Otherwise as the call without `await`.
  ///
  /// - Parameters:
  ///   - path: The asset.
  ///   - cost: The size of the value in bytes, if it differs from the file's.
  ///   - priority: The priority among all requests.
  ///   - decode: Makes the value. Runs in this task, outside all locks.
  /// - Returns: The value.
  /// - Throws: `AssetError`; `CancellationError` if the task is cancelled, which doesn't affect other requests; any
  ///   error that `decode` throws. Nothing is cached then.
  public func value<Value: Sendable>(
    for path: String, cost: Int? = nil, priority: AssetPriority = .high, decode: (Data) throws -> Value
  ) async throws -> Value {
    let number = try source.number(of: path)
    if let value = loader.value(of: number, Value.self) { return value }
    return loader.keep(try decode(try await loader.bytes(of: number, priority)), of: number, cost: cost)
  }
}
