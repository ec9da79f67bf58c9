#if Cloud && os(Linux)
import Foundation
import Glibc
import KeepsakeReplication

/// What a game wrote down about an operation of its wallet.
struct WalletNote: Codable {
  enum Event: String, Codable {
    /// The game is about to call.
    case planned
    /// The call has returned: the operation is made.
    case returned
    /// The call has thrown: the operation isn't made.
    case refused
  }
  var event: Event
  var operation: WalletOperation
}

/// A game's own record of its operations, a line each. A line is durable before the game goes on.
final class WalletNotes {
  private let file: Int32

  init(at url: URL) throws {
    file = open(url.path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    guard file >= 0 else { throw POSIXError(.EIO) }
    // An earlier process may have been killed within a line. An empty line is none.
    try append(Data())
  }

  deinit { close(file) }

  func add(_ event: WalletNote.Event, _ operation: WalletOperation) throws {
    try append(try JSONEncoder().encode(WalletNote(event: event, operation: operation)))
  }

  private func append(_ bytes: Data) throws {
    let line = bytes + Data("\n".utf8)
    let count = line.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    guard count == line.count, fsync(file) == 0 else { throw POSIXError(.EIO) }
  }

  /// Returns all whole lines. Of one that isn't whole, the game has never gone on.
  static func read(_ url: URL) throws -> [WalletNote] {
    guard FileManager.default.fileExists(atPath: url.path) else { return [] }
    return try Data(contentsOf: url).split(separator: UInt8(ascii: "\n")).compactMap {
      try? JSONDecoder().decode(WalletNote.self, from: $0)
    }
  }
}
#endif
