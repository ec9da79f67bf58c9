public import Foundation

/// What a game makes of its assets: an image of the bytes of a file.
extension AssetLibrary {
  /// The value that `decode` makes of an asset, kept by path and type until its memory is needed.
  ///
  ///     let ship = try assets.value(for: "Images/Ship.png") { try Image(png: $0) }
  ///
  /// If two threads ask at once, both may decode, and both get the value of the one that was done first. Values count against the budget and
  /// aren't pinned by batches; what the game needs for long it holds itself.
  ///
  /// - Parameters:
  ///   - cost: Bytes that the value takes, if it is known to be other than the size of the file: a decoded image is mostly larger.
  ///   - decode: Runs on this thread, outside of all locks.
  /// - Throws: `AssetError`, and what `decode` throws; nothing is kept then.
  public func value<Value: Sendable>(for path: String, cost: Int? = nil, decode: (Data) throws -> Value) throws -> Value {
    let number = try source.number(of: path)
    if let value = loader.value(of: number, Value.self) { return value }
    return loader.keep(try decode(try loader.bytes(of: number)), of: number, cost: cost)
  }

  /// The same, with the file read on a thread of the library's. `decode` runs in this task.
  public func value<Value: Sendable>(
    for path: String, cost: Int? = nil, priority: AssetPriority = .high, decode: (Data) throws -> Value
  ) async throws -> Value {
    let number = try source.number(of: path)
    if let value = loader.value(of: number, Value.self) { return value }
    return loader.keep(try decode(try await loader.bytes(of: number, priority)), of: number, cost: cost)
  }
}
