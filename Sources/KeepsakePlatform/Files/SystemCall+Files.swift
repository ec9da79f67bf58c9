#if !os(Windows)
package import Foundation

/// Files, by POSIX's functions. `SystemCall+WindowsFiles.swift` has the same for Windows.
extension SystemCall {
  /// Opens a file or a folder.
  ///
  /// - Parameter mode: The permissions of a file that is created, as far as the umask permits; Windows ignores them.
  /// - Returns: A number for `closeFile`; negative with the reason in `errno`.
  package static func openFile(_ path: String, _ purpose: FileOpening, mode: UInt16 = 0) -> Int32 {
    open(path, purpose.flags, mode_t(mode))
  }

  /// Opens what has a name in an open folder; that folder once more if the name is a dot.
  ///
  /// - Returns: A number for `closeFile`; negative with the reason in `errno`.
  package static func openFile(_ name: String, in folder: Int32, _ purpose: FileOpening) -> Int32 {
    openat(folder, name, purpose.flags)
  }

  /// Closes what was opened, and gives up its lock.
  package static func closeFile(_ file: Int32) { _ = close(file) }

  /// Reads bytes at an offset; fewer than wanted if the file ends before.
  ///
  /// - Returns: How many; negative with the reason in `errno`.
  package static func readFile(_ file: Int32, _ target: UnsafeMutableRawPointer?, _ count: Int, at offset: Int) -> Int {
    pread(file, target, count, off_t(offset))
  }

  /// Shows a file's bytes in memory, as far as the file has them.
  ///
  /// - Parameter size: The file's size, which isn't zero.
  /// - Returns: The bytes; nil with the reason in `errno`.
  package static func mapFile(_ file: Int32, size: Int) -> Data? {
    guard let start = mmap(nil, size, PROT_READ, MAP_PRIVATE, file, 0), start != MAP_FAILED else { return nil }
    return Data(bytesNoCopy: start, count: size, deallocator: .custom { start, size in munmap(start, size) })
  }

  /// Locks an open file for this process alone, until it is unlocked or closed.
  ///
  /// - Returns: 0, or -1 with the reason in `errno`: `EWOULDBLOCK` if somebody else has locked it.
  package static func lockFile(_ file: Int32) -> Int32 { flock(file, LOCK_EX | LOCK_NB) }

  package static func unlockFile(_ file: Int32) { _ = flock(file, LOCK_UN) }

  // MARK: Names

  /// Whether something is at a path. Links are followed.
  package static func isThere(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// Whether this program may write to what is at a path. Windows tells only whether something is there.
  ///
  /// - Returns: 0, or -1 with the reason in `errno`.
  package static func mayWrite(_ path: String) -> Int32 { access(path, W_OK) }

  /// Gives a file or a folder another name. Replaces a file by a file, and an empty folder by a folder. Windows refuses
  /// with `EACCES` if a program has the replaced file open, or a file in the folder.
  ///
  /// - Returns: 0, or -1 with the reason in `errno`.
  package static func renameFile(_ path: String, _ other: String) -> Int32 { systemRename(path, other) }

  /// Gives a file a name that must be free, without replacing anything. Its old name may stay: remove it afterwards.
  ///
  /// - Returns: 0, or -1 with the reason in `errno`: `EEXIST` if the name is taken.
  package static func nameFile(_ path: String, _ free: String) -> Int32 { link(path, free) }

  /// Removes a file's name; a link itself.
  ///
  /// - Returns: 0, or -1 with the reason in `errno`.
  @discardableResult
  package static func removeFile(_ path: String) -> Int32 { unlink(path) }

  /// Creates a folder.
  ///
  /// - Returns: 0, or -1 with the reason in `errno`.
  package static func makeFolder(_ path: String) -> Int32 { mkdir(path, 0o777) }

  /// Calls `body` with each name in a folder, in the system's order, as the file system has it; without "." and "..".
  ///
  /// - Parameter folder: What `openFile` returned for `folder` or `plainFolder`; closed by this.
  /// - Returns: 0, or the reason why there may be more names.
  package static func forEachName<Failure: Error>(
    in folder: Int32, _ body: (_ name: [UInt8]) throws(Failure) -> Void
  ) throws(Failure) -> Int32 {
    guard let stream = fdopendir(folder) else {
      let number = errno
      close(folder)
      return number
    }
    defer { closedir(stream) }
    errno = 0
    while let entry = readdir(stream) {
      let name = name(of: entry)
      if name != [UInt8(ascii: ".")], name != [UInt8(ascii: "."), UInt8(ascii: ".")] { try body(name) }
      errno = 0
    }
    return errno
  }

  private static func name(of entry: UnsafeMutablePointer<dirent>) -> [UInt8] {
    // Read in place: copying the entry would read beyond the end of one that is shorter than its type.
    guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return [] }
    let start = UnsafeRawPointer(entry) + offset
    return Array(UnsafeRawBufferPointer(start: start, count: strlen(start.assumingMemoryBound(to: CChar.self))))
  }

  // MARK: The process

  package static var processNumber: Int32 { getpid() }

  /// Writes to standard error, as far as it goes.
  package static func writeError(_ text: String) {
    var text = text
    // If this fails, there is nowhere left to report to.
    _ = text.withUTF8 { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}

extension FileOpening {
  fileprivate var flags: Int32 {
    let flags =
      switch self {
      case .reading, .syncing: O_RDONLY
      // Without O_NONBLOCK, opening a pipe would wait for a writer.
      case .readingAtOnce: O_RDONLY | O_NONBLOCK
      case .readingPlain: O_RDONLY | O_NOFOLLOW | O_NONBLOCK
      case .folder: O_RDONLY | O_DIRECTORY
      case .plainFolder: O_RDONLY | O_DIRECTORY | O_NOFOLLOW
      case .creating: O_WRONLY | O_CREAT | O_EXCL
      case .emptying: O_WRONLY | O_CREAT | O_TRUNC
      case .locking: O_RDWR | O_CREAT
      }
    return flags | O_CLOEXEC
  }
}

/// Outside the type, whose own functions would hide the system's.
private func systemRename(_ path: String, _ other: String) -> Int32 { rename(path, other) }
#endif
