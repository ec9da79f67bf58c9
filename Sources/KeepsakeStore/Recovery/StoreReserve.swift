import Foundation

/// A little room on the disk that is given up when there is no other, so that a store can be opened and its saves be loaded: SQLite needs
/// some pages for its log and the index beside it, even to read.
struct StoreReserve {
  /// Twice what opening needs.
  static let bytes = 128 << 10

  private let url: URL

  init(_ files: StoreFiles) { self.init(at: files.folder.appendingPathComponent("reserve")) }

  init(at url: URL) { self.url = url }

  /// Whether there was any.
  func giveUp() throws -> Bool {
    guard StoreFiles.exists(url) else { return false }
    try StoreFiles.remove(url)
    return true
  }

  /// Takes the room again where there is enough. Costs a look where it is taken already. It isn't synced: nothing is lost with it.
  func take() {
    guard !StoreFiles.exists(url) else { return }
    do {
      try Data(count: Self.bytes).write(to: url)
    } catch {
      // No room, or half of it: then later.
      try? StoreFiles.remove(url)
    }
  }
}
