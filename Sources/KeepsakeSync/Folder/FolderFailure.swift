import KeepsakePlatform
import KeepsakeReplication
import KeepsakeStore

/// What can be wrong with a folder, as failures that the engine can handle.
extension TransportFailure {
  /// Nothing was written, and nothing is known to be wrong, except that the folder isn't here at present.
  static func folderMissing(_ path: String) -> TransportFailure {
    TransportFailure(
      .unreachable,
      "the folder \(path) doesn't exist or contains no keepsake.json: it may be unmounted, not synced yet, or emptied")
  }

  /// The same for data that no folder was a cloud of before.
  static func newFolderMissing(_ path: String) -> TransportFailure {
    TransportFailure(
      .unreachable,
      """
      there is no folder \(path): it may be unmounted, or not synced yet; if no device has used it so far, create it, \
      empty, first
      """)
  }

  /// Retrying won't help: a person has to choose.
  static func otherFolder(_ path: String, held: ContainerID, found: ContainerID) -> TransportFailure {
    TransportFailure(
      .unauthorized,
      """
      the folder \(path) belongs to another player (\(found)) than this device's data (\(held)): choose another \
      folder, or join that player with `joining: true`
      """)
  }

  /// Nothing in iCloud is this player's, or nothing of it is known here yet.
  static func noAccountFolder(_ path: String) -> TransportFailure {
    TransportFailure(
      .unreachable,
      """
      the folder \(path) in iCloud is empty: it hasn't arrived yet, was emptied, or the player has signed in to \
      another account
      """)
  }

  /// Retrying won't help: a person has to choose.
  static func otherAccount(_ path: String, held: ContainerID, found: ContainerID) -> TransportFailure {
    TransportFailure(
      .unauthorized,
      """
      the folder \(path) in iCloud belongs to another account (\(found)) than this device's data (\(held)): sign in \
      to that account again, or join this one's data with `joining: true`
      """)
  }

  static func unusableName(_ name: String) -> TransportFailure {
    TransportFailure(
      .unauthorized,
      """
      "\(name.prefix(100))" can't be a folder's name in iCloud: use at most 100 letters, digits, spaces, "-" and "_"
      """)
  }

  static func newerFolder(_ path: String) -> TransportFailure {
    TransportFailure(
      .unauthorized, "the folder \(path) was made by a newer release of this game: update it to sync again")
  }

  /// Something else is where a plain file or folder should be.
  static func folderBlocked(_ path: String) -> TransportFailure {
    TransportFailure(
      .server(retryAfterMilliseconds: nil), "\(path) is in the way: it has to be a plain folder or file; remove it")
  }

  static func tooManyEntries(_ path: String) -> TransportFailure {
    TransportFailure(
      .server(retryAfterMilliseconds: nil),
      "\(path) has more than \(FolderLimits.entries) entries: choose a folder that only the game uses"
    )
  }

  static func tooMuchWaiting(_ path: String) -> TransportFailure {
    TransportFailure(
      .server(retryAfterMilliseconds: nil),
      """
      \(path) contains more than \(FolderLimits.waitingBytes >> 20) MiB that can't be used yet: remove what this game \
      didn't put there
      """)
  }

  /// A system call failed while looking at the folder.
  static func looking(at path: String, _ number: Int32) -> TransportFailure {
    TransportFailure(.server(retryAfterMilliseconds: nil), "\(path) can't be read: \(words(for: number))")
  }

  static func words(for number: Int32) -> String { String(cString: strerror(number)) }

  /// Files that this device needs first are still on their way. Nothing was written.
  static func stillArriving(_ path: String) -> TransportFailure {
    TransportFailure(
      .unreachable, "files of \(path) are in iCloud and not yet on this device: they have been asked for")
  }

  /// There is no iCloud for this game at present.
  static var iCloudOff: TransportFailure {
    TransportFailure(
      .unreachable,
      "iCloud isn't available: the player isn't signed in, has turned it off for this game, or this system has none")
  }

  /// Converts an error in a folder to the failure that the engine handles.
  init(inFolder error: any Error) {
    switch error {
    case let failure as TransportFailure:
      self = failure
    case let error as StoreError:
      // Something may have been written: only a failed look may report "unreachable", after which what was sent counts
      // as never sent.
      let kind: Kind = error.code == .missing ? .interrupted : .server(retryAfterMilliseconds: nil)
      self.init(kind, error.message)
    case let error as ExchangeError:
      self.init(.rejected, error.description)
    default:
      self.init(.interrupted, String(describing: error))
    }
  }
}
