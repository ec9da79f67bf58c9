/// Waiting until what was written is on the disk, and not only in the drive's cache.
package enum FullSync {
  /// What a connection of SQLite is told to sync fully; empty where it does so by itself. There is no way to ask at run
  /// time: on Apple's systems, its `fsync` leaves the bytes in the drive's cache.
  package static var databaseStatements: String {
    HostSystem.current.isApple ? "PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON" : ""
  }

  /// Waits until what was written to an open file is on the disk.
  ///
  /// - Returns: 0, or -1 with the reason in `errno`.
  package static func flush(_ descriptor: Int32) -> Int32 {
    #if os(Windows)
    guard let handle = WindowsFile.handle(descriptor) else { return -1 }
    return WindowsFile.result(FlushFileBuffers(handle))
    #else
    #if canImport(Darwin)
    // There, fsync stops at the drive's cache. Where F_FULLFSYNC isn't supported, fsync is all there is.
    if fcntl(descriptor, F_FULLFSYNC) == 0 { return 0 }
    #endif
    return fsync(descriptor)
    #endif
  }

  /// Waits until the names in an open folder are on the disk. Does nothing on Windows, which has no such function:
  /// there, giving a file its name waits (`SystemCall.renameFile`), and creating a folder or removing a name doesn't.
  ///
  /// - Returns: 0, or -1 with the reason in `errno`.
  package static func flushFolder(_ descriptor: Int32) -> Int32 {
    #if os(Windows)
    0
    #else
    fsync(descriptor)
    #endif
  }
}
