import Foundation

/// A little reserved disk space that is released when there is no other, so that a store can be opened and its saves
/// loaded: even to read, SQLite needs some pages for its log and the index beside it.
struct StoreReserve {
  /// Twice what opening needs.
  static let bytes = 128 << 10

  private let url: URL

  init(_ files: StoreFiles) { self.init(at: files.folder.appendingPathComponent("reserve")) }

  init(at url: URL) { self.url = url }

  /// Releases the space. Returns whether any was reserved.
  func giveUp() throws -> Bool {
    guard StoreFiles.exists(url) else { return false }
    try StoreFiles.remove(url)
    return true
  }

  /// Reserves the space again if there is enough. Costs only a check if it is already reserved. The file isn't synced,
  /// because losing it loses nothing.
  func take() {
    guard !StoreFiles.exists(url) else { return }
    do {
      try Data(count: Self.bytes).write(to: url)
    } catch {
      // No space, or not enough: retried later.
      try? StoreFiles.remove(url)
    }
  }
}
