import KeepsakePlatform

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
    switch SystemCall.rename(first, second, in: folder, .exchange) {
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
    switch SystemCall.rename(first, second, in: folder, .keep) {
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
}
