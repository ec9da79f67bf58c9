#if Cloud
import Foundation
import KeepsakeReplication
import Synchronization

/// What one request of the studio may decode, and what it has decoded.
///
/// A device chooses what a content is decoded from: a thousand others, each of them the largest there may be, in a few
/// kilobytes; and an export decodes every content. So the work is bounded, and the newest contents are kept as bases of
/// others, which makes an export of honest ones about as much work as their bytes.
final class ContentDecoding: Sendable {
  /// About a minute of one thread's work, whatever the player has, and a second for each megabyte that is stored.
  private static let leastBytes = 32 << 30
  private static let bytesPerStoredByte = 1_000
  /// What looking for a content costs, as if it were so many bytes.
  static let lookBytes = 64 << 10
  private static let keptBytes = 64 << 20

  private struct State {
    var left: Int
    var kept: [ContentHash: Data] = [:]
    var order: ArraySlice<ContentHash> = []
    var keptBytes = 0
  }
  private let state: Mutex<State>

  /// - Parameter bytes: How many bytes may be decoded.
  init(bytes: Int) { state = Mutex(State(left: bytes)) }

  /// - Parameter stored: The bytes that the player has stored.
  convenience init(stored: Int64) {
    let share = Int(clamping: stored).multipliedReportingOverflow(by: Self.bytesPerStoredByte)
    let (bytes, isOver) = Self.leastBytes.addingReportingOverflow(share.overflow ? .max : max(share.partialValue, 0))
    self.init(bytes: isOver ? .max : bytes)
  }

  /// Takes from what may be decoded. Once that isn't enough, nothing more is decoded.
  ///
  /// - Throws: An `APIError` if it isn't enough.
  func take(_ bytes: Int) throws {
    try state.withLock { state in
      guard state.left > 0, bytes <= state.left else {
        state.left = 0
        throw APIError.versionTooCostly
      }
      state.left -= bytes
    }
  }

  func kept(_ hash: ContentHash) -> Data? { state.withLock { $0.kept[hash] } }

  /// Keeps what was decoded, in place of what was kept first. Its hash isn't checked: the caller checks the result.
  func keep(_ plain: Data, of hash: ContentHash) {
    guard plain.count <= Self.keptBytes else { return }
    state.withLock { state in
      guard state.kept.updateValue(plain, forKey: hash) == nil else { return }
      state.order.append(hash)
      state.keptBytes += plain.count
      while state.keptBytes > Self.keptBytes, let first = state.order.popFirst() {
        state.keptBytes -= state.kept.removeValue(forKey: first)?.count ?? 0
      }
    }
  }
}
#endif
