import KeepsakePlatform

/// An open file or folder, closed when the value is destroyed.
struct Descriptor: ~Copyable {
  let number: Int32

  /// Opens `name` in the folder `parent`, without following a symbolic link in the last component.
  ///
  /// - Throws: `MirrorError` with the system's error number.
  init(opening name: String, in parent: Int32, flags: Int32, mode: mode_t = 0, path: String) throws(MirrorError) {
    var result: Int32
    repeat {
      result = openat(parent, name, flags | O_NOFOLLOW | O_CLOEXEC, mode)
    } while result < 0 && errno == EINTR
    guard result >= 0 else { throw .system("open the file", errno, path: path) }
    number = result
  }

  /// Opens a folder by a path from the user; symbolic links on the way are followed.
  init(folder path: String) throws(MirrorError) {
    let result = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard result >= 0 else {
      throw MirrorError(
        .folder, "could not open the folder: \(String(cString: strerror(errno)))", path: path, errorNumber: errno)
    }
    number = result
  }

  deinit { close(number) }

  func status(path: String) throws(MirrorError) -> stat {
    var status = stat()
    guard fstat(number, &status) == 0 else { throw .system("examine the file", errno, path: path) }
    return status
  }

  func synchronize(path: String) throws(MirrorError) {
    guard fsync(number) == 0 else { throw .system("write the file to the disk", errno, path: path) }
  }
}
