package import KeepsakeStore

/// The store of a device is what the service keeps up to date.
extension KeepsakeStore.Store: DeviceStore {
  package typealias Transaction = StoreTransaction
}
