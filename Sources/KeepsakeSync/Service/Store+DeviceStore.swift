package import KeepsakeStore

/// The device's own store is synchronized through its writer's transactions.
extension Store: DeviceStore {}
