#if Cloud
import Foundation
import KeepsakePlatform
import Synchronization

/// The folder that one server owns, locked until it is closed (by the system, if the process dies).
///
///     cloud.sqlite     containers, devices, small contents
///     contents/        large contents, one file each
///     incoming/        uploads in progress; those that arrive in parts survive the server's exit
///     secret           what signs tokens (ServerSecrets)
///     secret.lock      locked while a command changes it
///     app-key          the app key that was generated at the first start, if none was given
///     witness          the database's generation (DatabaseWitness)
///     server-keys      hashes of the keys with which the game's own servers order the bank (ServerKeys)
///     server-keys.lock locked while a command changes them
///     apps             the apps, with hashes of their keys (AppRegistry)
///     apps.lock        locked while a command changes them
///     restoring/       while a backup is being restored into the folder (BackupRestore)
///     migrate.lock     locked while a command moves the cloud into another database (CloudMoveRun)
///     moving-id        while a cloud is being moved into the folder (ReturnMark)
///     cloud.sqlite.moving   what was copied of it (CloudReturn)
///     lock
///
/// Nobody but its owner may read anything in it: the folder gets the mode 0700 and its files 0600, whatever they had.
final class DataFolder: Sendable {
  static let databaseName = "cloud.sqlite"
  static let secretName = "secret"
  static let contentsName = "contents"
  static let witnessName = "witness"
  static let lockName = "lock"
  static let restoringName = "restoring"
  static let movingName = databaseName + ".moving"
  /// The small files that a backup has to have, as far as they exist.
  static let keptNames = [secretName, "app-key", "server-keys", AppRegistry.fileName]
  /// What else may be here, and is of no use in a backup.
  static let transientNames: Set<String> = [
    contentsName, "incoming", lockName, witnessName, restoringName, "secret.lock", "server-keys.lock",
    AppRegistry.fileName + ".lock", "probe", "migrate.lock", ReturnMark.fileName, movingName, movingName + "-wal",
    movingName + "-shm", movingName + "-journal",
  ]

  let url: URL
  private let lock: Mutex<Int32?>

  var database: URL { url.appendingPathComponent(Self.databaseName) }
  var contents: URL { url.appendingPathComponent(Self.contentsName, isDirectory: true) }
  var incoming: URL { url.appendingPathComponent("incoming", isDirectory: true) }

  var witness: URL { url.appendingPathComponent(Self.witnessName) }

  /// Creates the folder if needed, and locks it. Throws `folderInUse` if another server holds the lock.
  ///
  /// - Parameter evenMoving: Whether a cloud may be on its way into the folder: what is there is none yet.
  init(at url: URL, evenMoving: Bool = false) throws {
    self.url = url
    let descriptor = try Self.lock(url)
    lock = Mutex(descriptor)
    let manager = FileManager.default
    guard !manager.fileExists(atPath: url.appendingPathComponent(Self.restoringName).path) else {
      throw ServerError(
        .unusableFile,
        """
        A backup was being restored into \(url.path), and that was interrupted: repeat `keepsake cloud restore` with \
        the same folder.
        """)
    }
    let isMoving = [ReturnMark.fileName, Self.movingName].contains {
      manager.fileExists(atPath: url.appendingPathComponent($0).path)
    }
    guard evenMoving || !isMoving else {
      throw ServerError(
        .unusableFile,
        """
        A cloud is being moved into \(url.path), and isn't there yet: run `keepsake migrate` with the same arguments \
        again, or give that up with --abandon.
        """)
    }
    do {
      try manager.createDirectory(at: contents, withIntermediateDirectories: true)
      try manager.createDirectory(at: incoming, withIntermediateDirectories: true)
    } catch {
      throw ServerError(.inputOutput, "The data folder \(url.path) can't be prepared.", cause: error)
    }
    try restrictFiles()
  }

  deinit { unlock() }

  /// Creates a data folder if needed, and locks it until the returned descriptor is unlocked and closed. Throws
  /// `folderInUse` if another process holds the lock.
  static func lock(_ url: URL) throws -> Int32 {
    do {
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw ServerError(.inputOutput, "The data folder \(url.path) can't be created.", cause: error)
    }
    try PrivateFile.restrict(url, isFolder: true)
    let lock = open(url.appendingPathComponent(lockName).path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard lock >= 0 else {
      throw ServerError(.inputOutput, "The data folder \(url.path) can't be written.", cause: PrivateFile.systemError())
    }
    guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
      let failure = PrivateFile.systemError()
      close(lock)
      if failure.code == .EWOULDBLOCK {
        throw ServerError(.folderInUse, "Another server is running on the data folder \(url.path).")
      }
      throw ServerError(.inputOutput, "The data folder \(url.path) can't be locked.", cause: failure)
    }
    return lock
  }

  /// Returns the database of the data folder at `url`, for commands that don't create one.
  static func existingDatabase(in url: URL) throws -> URL {
    let database = url.appendingPathComponent(databaseName)
    guard FileManager.default.fileExists(atPath: database.path) else {
      throw ServerError(.missing, "There is no cloud's database \(database.path): run `keepsake serve` once.")
    }
    return database
  }

  /// Returns the same, for commands that use what is in it.
  ///
  /// - Throws: `missing` also if the database is empty: where servers use PostgreSQL, it is, and what is done to it
  ///   would have no effect on the cloud.
  static func ownDatabase(in url: URL) throws -> URL {
    let database = try existingDatabase(in: url)
    func isEmpty(_ file: URL) throws -> Bool {
      var status = stat()
      guard stat(file.path, &status) == 0 else {
        if errno == ENOENT { return true }
        throw ServerError(.inputOutput, "\(file.path) can't be read.", cause: PrivateFile.systemError())
      }
      return status.st_size == 0
    }
    // Until it is emptied for the first time, everything may be in the log.
    let log = url.appendingPathComponent(databaseName + "-wal")
    guard try !isEmpty(database) || !isEmpty(log) else {
      throw ServerError(
        .missing,
        """
        The database \(database.path) is empty: either the servers of this cloud use a PostgreSQL database, or none \
        has started yet.
        """)
    }
    return database
  }

  /// Restricts what is there already, and creates the database's file, because SQLite would create it for everybody.
  /// SQLite gives the files beside it the same mode.
  private func restrictFiles() throws {
    try PrivateFile.create(database)
    for folder in [contents, incoming] { try PrivateFile.restrict(folder, isFolder: true) }
    let names = [
      "lock", "secret", "secret.lock", "app-key", "witness", "server-keys", "server-keys.lock", AppRegistry.fileName,
      AppRegistry.fileName + ".lock",
    ]
    let files = ["", "-wal", "-shm", "-journal"].map { Self.databaseName + $0 } + names
    for name in files { try PrivateFile.restrict(url.appendingPathComponent(name)) }
  }

  /// Releases the lock, so that another server can use the folder.
  func unlock() {
    lock.withLock { lock in
      if let descriptor = lock { Self.unlock(descriptor) }
      lock = nil
    }
  }

  /// Ends what `lock` has begun.
  static func unlock(_ descriptor: Int32) {
    // A child process that is being started also has the descriptor, until it runs its own program: if it were only
    // closed here, the lock would stay with the child. If unlocking fails, closing is all that is left.
    _ = flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  private var appKeyFile: URL { url.appendingPathComponent("app-key") }

  /// Whether an app key was generated for this folder.
  var hasOwnAppKey: Bool { FileManager.default.fileExists(atPath: appKeyFile.path) }

  /// Returns the app key that was generated for this folder at its first start.
  func ownAppKey() throws -> String {
    let file = appKeyFile
    if let bytes = try PrivateFile.read(file) {
      let key = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
      guard AppKeys.isAcceptable(key) else {
        throw ServerError(.damaged, "\(file.path) doesn't contain an app key.")
      }
      return key
    }
    var source = SystemRandomNumberGenerator()
    let key = "app_" + ReadableCode.make(length: 28, using: &source).lowercased()
    try PrivateFile.write(Data((key + "\n").utf8), to: file)
    return key
  }
}
#endif
