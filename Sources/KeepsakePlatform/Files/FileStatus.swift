/// What the system says about a file or a folder.
///
/// On Windows, `changed` can be set by a program, and is zero on file systems that don't keep it; `inode` has 64 bits,
/// which don't tell all files of ReFS apart.
package struct FileStatus: Hashable, Sendable {
  package enum Kind: Sendable {
    case file, folder
    /// A symbolic link that isn't followed; on Windows whatever stands for another name.
    case link
    /// A pipe, a device, a socket.
    case other
  }

  package let kind: Kind
  /// In bytes.
  package let size: Int64
  /// When the content was last modified; a program can set it.
  package let modified: FileTime
  /// When the entry was last changed; no program can set it.
  package let changed: FileTime
  package let inode: UInt64
  package let device: UInt64

  #if os(Windows)
  /// Looks at what is at a path; nil with the reason in `errno` if it can't be examined.
  package init?(at path: String, followsLinks: Bool = true) {
    guard let handle = WindowsFile.open(path, followsLinks ? .examining : .examiningPlain) else { return nil }
    defer { CloseHandle(handle) }
    self.init(handle)
  }

  /// Looks at an open file or folder; nil with the reason in `errno` if it can't be examined.
  package init?(of file: Int32) {
    guard let handle = WindowsFile.handle(file) else { return nil }
    self.init(handle)
  }

  /// Looks at an entry of an open folder, and doesn't follow it if it is a link; nil with the reason in `errno` if it
  /// can't be examined.
  package init?(of name: String, in folder: Int32) {
    guard let path = WindowsFile.path(of: name, in: folder),
      let handle = WindowsFile.open(path, .examiningPlain)
    else { return nil }
    defer { CloseHandle(handle) }
    self.init(handle)
  }

  init?(_ handle: HANDLE) {
    guard GetFileType(handle) == DWORD(FILE_TYPE_DISK) else {
      kind = .other
      (size, inode, device) = (0, 0, 0)
      (modified, changed) = (FileTime(windowsTime: 0), FileTime(windowsTime: 0))
      return
    }
    var status = BY_HANDLE_FILE_INFORMATION()
    var times = FILE_BASIC_INFO()
    guard GetFileInformationByHandle(handle, &status),
      GetFileInformationByHandleEx(handle, FileBasicInfo, &times, DWORD(MemoryLayout<FILE_BASIC_INFO>.size))
    else {
      WindowsFile.noteError()
      return nil
    }
    if WindowsFile.isLink(handle) {
      kind = .link
    } else {
      kind = status.dwFileAttributes & DWORD(FILE_ATTRIBUTE_DIRECTORY) != 0 ? .folder : .file
    }
    size = Int64(bitPattern: UInt64(status.nFileSizeHigh) << 32 | UInt64(status.nFileSizeLow))
    modified = FileTime(windowsTime: times.LastWriteTime.QuadPart)
    changed = FileTime(windowsTime: times.ChangeTime.QuadPart)
    inode = UInt64(status.nFileIndexHigh) << 32 | UInt64(status.nFileIndexLow)
    device = UInt64(status.dwVolumeSerialNumber)
  }
  #else
  package init(_ status: borrowing stat) {
    switch status.st_mode & S_IFMT {
    case S_IFREG: kind = .file
    case S_IFDIR: kind = .folder
    case S_IFLNK: kind = .link
    default: kind = .other
    }
    size = Int64(status.st_size)
    (modified, changed) = (FileTime.modified(status), FileTime.changed(status))
    inode = UInt64(truncatingIfNeeded: status.st_ino)
    device = UInt64(truncatingIfNeeded: status.st_dev)
  }

  /// Looks at what is at a path; nil with the reason in `errno` if it can't be examined.
  package init?(at path: String, followsLinks: Bool = true) {
    self.init(path, in: AT_FDCWD, followsLinks ? 0 : AT_SYMLINK_NOFOLLOW)
  }

  /// Looks at an open file or folder; nil with the reason in `errno` if it can't be examined.
  package init?(of file: Int32) {
    var status = stat()
    guard fstat(file, &status) == 0 else { return nil }
    self.init(status)
  }

  /// Looks at an entry of an open folder, and doesn't follow it if it is a link; nil with the reason in `errno` if it
  /// can't be examined.
  package init?(of name: String, in folder: Int32) {
    self.init(name, in: folder, AT_SYMLINK_NOFOLLOW)
  }

  private init?(_ path: String, in folder: Int32, _ flags: Int32) {
    var status = stat()
    guard fstatat(folder, path, &status, flags) == 0 else { return nil }
    self.init(status)
  }
  #endif
}
