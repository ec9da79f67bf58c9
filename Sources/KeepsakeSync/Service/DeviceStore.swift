package import KeepsakeReplication

/// A store that lends transactions: on a device the store's database, in tests memory.
package protocol DeviceStore: Sendable {
  associatedtype Transaction: DeviceStorage

  /// Runs `body` in one transaction, durable when this returns. What `body` throws undoes all that it did. Blocks.
  func write<Value>(_ body: (inout Transaction) throws -> Value) throws -> Value
}
