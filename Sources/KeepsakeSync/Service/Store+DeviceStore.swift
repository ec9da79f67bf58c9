package import KeepsakeStore

/// The device's own store is synchronized through transactions of its writer.
extension Store: DeviceStore {}
