import Foundation

/// In the order of the tables.
enum SlotWay: String, CaseIterable {
  case keepsake, files, transactions
  case oneTransaction = "one-transaction"

  var title: String {
    switch self {
    case .keepsake: "Keepsake"
    case .files: "a file each: fsync and rename"
    case .transactions: "GRDB, a transaction each"
    case .oneTransaction: "GRDB, one transaction"
    }
  }

  /// Tasks that save at once can't know of each other.
  var hasTasks: Bool { self != .oneTransaction }

  func open() throws -> any SlotKeeper {
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "keepsake-slots-\(rawValue)-\(ProcessInfo.processInfo.processIdentifier)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return switch self {
    case .keepsake: try KeepsakeSlots(folder)
    case .files: FileSlots(folder)
    case .transactions: try RowSlots(folder, isOneTransaction: false)
    case .oneTransaction: try RowSlots(folder, isOneTransaction: true)
    }
  }
}
