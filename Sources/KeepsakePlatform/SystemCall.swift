package import Foundation

/// Functions of the system that are declared differently on each, or whose names are those of methods that call them.
/// They return what the system returns, with the reason for a failure in `errno`.
package enum SystemCall {
  #if !os(Windows)
  package static func write(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    systemWrite(descriptor, bytes, count)
  }

  package static func kill(_ process: Int32, _ number: Int32) -> Int32 { systemKill(process, number) }

  package static func connect(_ socket: Int32, _ address: UnsafePointer<sockaddr>, _ bytes: socklen_t) -> Int32 {
    systemConnect(socket, address, bytes)
  }

  /// Without a signal if the other side has closed, where the system can be told so for one call.
  package static func send(_ socket: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    #if canImport(Darwin)
    systemSend(socket, bytes, count, 0)
    #else
    systemSend(socket, bytes, count, Int32(MSG_NOSIGNAL))
    #endif
  }

  /// The kind of a socket for a stream of bytes.
  package static var stream: Int32 {
    #if canImport(Glibc)
    Int32(SOCK_STREAM.rawValue)
    #else
    SOCK_STREAM
    #endif
  }

  // MARK: Renames that C's library doesn't have

  /// How a file is renamed to a name that may be taken.
  package enum Renaming {
    /// Both names exist, and change places.
    case exchange
    /// Fails with `EEXIST` if the name is taken.
    case keep
  }

  /// Renames a file of an open folder.
  ///
  /// - Returns: 0, or the reason; `ENOSYS` if the system has no such function.
  package static func rename(_ first: String, _ second: String, in folder: Int32, _ how: Renaming) -> Int32 {
    #if canImport(Darwin)
    let flags = how == .exchange ? UInt32(RENAME_SWAP) : UInt32(RENAME_EXCL)
    return renameatx_np(folder, first, folder, second, flags) == 0 ? 0 : errno
    #else
    guard let renameWithFlags else { return ENOSYS }
    // RENAME_EXCHANGE and RENAME_NOREPLACE of Linux's <linux/fs.h>.
    let flags: UInt32 = how == .exchange ? 2 : 1
    return renameWithFlags(folder, first, folder, second, flags) == 0 ? 0 : errno
    #endif
  }

  #if !canImport(Darwin)
  private typealias RenameWithFlags =
    @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32
  // The declaration of renameat2 is behind a macro that Swift's import of the library doesn't set, so it is looked up.
  private static let renameWithFlags: RenameWithFlags? = dlsym(nil, "renameat2").map {
    unsafeBitCast($0, to: RenameWithFlags.self)
  }
  #endif
  #endif

  // MARK: Numbers that Windows' C library doesn't have

  #if os(Windows)
  // WSAEDQUOT and WSAESTALE of winsock2.h.
  package static let overQuota: Int32 = 10_069
  package static let staleFile: Int32 = 10_070
  #else
  package static let overQuota: Int32 = EDQUOT
  package static let staleFile: Int32 = ESTALE
  #endif

  // MARK: Advice

  /// Lets the system forget what it has in memory of a file, so that it is read from the disk. Does nothing where there
  /// is no such advice, and the system may ignore it.
  package static func forgetCached(_ descriptor: Int32) {
    #if os(Linux)
    _ = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
    #endif
  }

  /// Asks the system's backups to skip a file or a folder: iCloud and Finder on Apple's systems. Does nothing
  /// elsewhere.
  package static func excludeFromBackups(_ url: URL) throws {
    #if canImport(Darwin)
    var url = url
    var values = URLResourceValues()
    values.isExcludedFromBackup = true
    try url.setResourceValues(values)
    #endif
  }
}

#if !os(Windows)
// Outside the type, whose own functions would hide the system's.
private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
  write(descriptor, bytes, count)
}

private func systemKill(_ process: Int32, _ number: Int32) -> Int32 { kill(process, number) }

private func systemConnect(_ socket: Int32, _ address: UnsafePointer<sockaddr>, _ bytes: socklen_t) -> Int32 {
  connect(socket, address, bytes)
}

private func systemSend(_ socket: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
  send(socket, bytes, count, flags)
}
#endif
