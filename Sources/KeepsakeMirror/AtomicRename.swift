#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The renames that C's standard library doesn't have, with substitutes for systems that lack them.
enum AtomicRename {
  /// Exchanges the names of two files of a folder in one step.
  ///
  /// If the system or the file system can't, the old file first gets `spare` as a second name and is then replaced; a
  /// file that a program renames to the name between those two steps is lost. `spare` is then the old file, and `first`
  /// is gone.
  ///
  /// - Returns: The current name of the old file of `second`; nil if there was none.
  static func exchange(_ first: String, _ second: String, spare: String, in folder: Int32) throws(MirrorError)
    -> String?
  {
    switch rename(first, second, in: folder, how: .exchange) {
    case 0: return first
    case ENOENT: return nil
    case ENOSYS, EINVAL, ENOTSUP, EOPNOTSUPP: break
    case let number: throw .system("swap the new file in", number, path: second)
    }
    guard linkat(folder, second, folder, spare, 0) == 0 else {
      if errno == ENOENT { return nil }
      throw .system("keep the old file under another name", errno, path: second)
    }
    guard renameat(folder, first, folder, second) == 0 else {
      throw .system("swap the new file in", errno, path: second)
    }
    return spare
  }

  /// Renames a file to a name that is free.
  ///
  /// - Returns: False if the name is taken; nothing was changed then.
  static func renameToFree(_ first: String, _ second: String, in folder: Int32) throws(MirrorError) -> Bool {
    switch rename(first, second, in: folder, how: .keep) {
    case 0: return true
    case EEXIST: return false
    case ENOSYS, EINVAL, ENOTSUP, EOPNOTSUPP: break
    case let number: throw .system("put the new file in place", number, path: second)
    }
    guard linkat(folder, first, folder, second, 0) == 0 else {
      if errno == EEXIST { return false }
      throw .system("put the new file in place", errno, path: second)
    }
    unlinkat(folder, first, 0)
    return true
  }

  private enum How {
    case exchange, keep
  }

  /// Calls the system's own function. Returns 0 or its error number; ENOSYS if there is no such function.
  private static func rename(_ first: String, _ second: String, in folder: Int32, how: How) -> Int32 {
    #if canImport(Darwin)
    let flags = how == .exchange ? UInt32(RENAME_SWAP) : UInt32(RENAME_EXCL)
    return renameatx_np(folder, first, folder, second, flags) == 0 ? 0 : errno
    #else
    guard let call else { return ENOSYS }
    // RENAME_EXCHANGE and RENAME_NOREPLACE of Linux's <linux/fs.h>.
    let flags: UInt32 = how == .exchange ? 2 : 1
    return call(folder, first, folder, second, flags) == 0 ? 0 : errno
    #endif
  }

  #if !canImport(Darwin)
  private typealias Call =
    @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32

  // The declaration of renameat2 is behind a macro that Swift's import of the library doesn't set, so it is looked up.
  private static let call: Call? = dlsym(nil, "renameat2").map { unsafeBitCast($0, to: Call.self) }
  #endif
}
