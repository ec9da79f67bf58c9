package import KeepsakeReplication

/// A store that provides transactions: a device's database, or memory in tests.
package protocol DeviceStore: Sendable {
  associatedtype Transaction: DeviceStorage

  /// Runs `body` in one transaction, which is durable when this returns. If `body` throws, everything that it did is
  /// rolled back. Blocks.
  func write<Value>(_ body: (inout Transaction) throws -> Value) throws -> Value
}
