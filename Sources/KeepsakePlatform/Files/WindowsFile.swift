#if os(Windows)
/// Files as Windows' own functions know them, and the numbers that POSIX has for its errors.
///
/// Paths are those of `URL.path`, with slashes or backslashes: Windows takes both, except in paths that begin with
/// `\\?\`. Without that prefix they may have 260 characters, or more if the system and the program allow it.
enum WindowsFile {
  /// For what a handle is opened, in the terms of `CreateFileW`.
  struct Purpose {
    var access: DWORD
    var creation = DWORD(OPEN_EXISTING)
    /// Whether others may rename and remove it meanwhile.
    var isMovable = true
    /// Whether a link is opened itself, instead of what it leads to.
    var isLinkItself = false

    static let examining = Purpose(access: DWORD(FILE_READ_ATTRIBUTES))
    static let examiningPlain = Purpose(access: DWORD(FILE_READ_ATTRIBUTES), isLinkItself: true)
  }

  /// Opens a file or a folder; nil with the reason in `errno`.
  static func open(_ path: String, _ purpose: Purpose) -> HANDLE? {
    let sharing = FILE_SHARE_READ | FILE_SHARE_WRITE | (purpose.isMovable ? FILE_SHARE_DELETE : 0)
    // Without the first, folders can't be opened.
    let flags =
      DWORD(FILE_FLAG_BACKUP_SEMANTICS) | (purpose.isLinkItself ? DWORD(FILE_FLAG_OPEN_REPARSE_POINT) : 0)
    let (handle, error) = path.withCString(encodedAs: UTF16.self) {
      (CreateFileW($0, purpose.access, DWORD(sharing), nil, purpose.creation, flags, nil), GetLastError())
    }
    guard let handle, handle != INVALID_HANDLE_VALUE else {
      noteError(error)
      return nil
    }
    return handle
  }

  /// Opens what isn't a link; nil with `ELOOP` in `errno` if it is one.
  static func openPlain(_ path: String, _ purpose: Purpose) -> HANDLE? {
    var itself = purpose
    itself.isLinkItself = true
    guard let handle = open(path, itself) else { return nil }
    let tag = reparseTag(handle)
    guard tag != 0 else { return handle }
    CloseHandle(handle)
    guard !isLink(tag) else {
      _ = _set_errno(ELOOP)
      return nil
    }
    // Such as a file of a cloud drive: its bytes are there only if it is opened as what it stands for. That leaves a
    // moment in which a link may take its place.
    return open(path, purpose)
  }

  static func isLink(_ handle: HANDLE) -> Bool { isLink(reparseTag(handle)) }

  /// What a file or folder stands for; zero for a usual one.
  private static func reparseTag(_ handle: HANDLE) -> DWORD {
    var status = FILE_ATTRIBUTE_TAG_INFO()
    // File systems without such files don't know the question.
    guard
      GetFileInformationByHandleEx(
        handle, FileAttributeTagInfo, &status, DWORD(MemoryLayout<FILE_ATTRIBUTE_TAG_INFO>.size)),
      status.FileAttributes & DWORD(FILE_ATTRIBUTE_REPARSE_POINT) != 0
    else { return 0 }
    return status.ReparseTag
  }

  /// Whether it stands for another name (`IsReparseTagNameSurrogate` of winnt.h).
  private static func isLink(_ tag: DWORD) -> Bool { tag & 0x2000_0000 != 0 }

  // MARK: Numbers of files

  /// Gives an open file a number; negative with the reason in `errno`, and closed.
  static func number(_ handle: HANDLE) -> Int32 {
    let number = _open_osfhandle(Int(bitPattern: handle), 0)
    if number < 0 { CloseHandle(handle) }
    return number
  }

  /// Returns the handle of a file's number, which stays open; nil with the reason in `errno`.
  static func handle(_ file: Int32) -> HANDLE? {
    // Minus 2 is a standard stream without a file.
    let handle = _get_osfhandle(file)
    guard handle != -1, handle != -2 else {
      _ = _set_errno(EBADF)
      return nil
    }
    return HANDLE(bitPattern: handle)
  }

  /// Returns the path of an entry of an open folder; the folder's own if the name is a dot. Nil with the reason in
  /// `errno`.
  ///
  /// A folder that isn't movable keeps its path as long as it is open.
  static func path(of name: String, in folder: Int32) -> String? {
    guard let handle = handle(folder) else { return nil }
    let flags = DWORD(FILE_NAME_NORMALIZED | VOLUME_NAME_DOS)
    let count = GetFinalPathNameByHandleW(handle, nil, 0, flags)
    var units = [UInt16](repeating: 0, count: Int(count) + 1)
    let length = GetFinalPathNameByHandleW(handle, &units, DWORD(units.count), flags)
    guard length > 0, length < DWORD(units.count) else {
      noteError()
      return nil
    }
    let path = String(decoding: units[..<Int(length)], as: UTF16.self)
    return name == "." ? path : "\(path)\\\(name)"
  }

  // MARK: Errors

  /// Returns 0, or -1 with the reason in `errno`.
  static func result(_ isDone: Bool) -> Int32 { isDone ? 0 : failure(GetLastError()) }

  /// Returns -1, with the reason in `errno`.
  static func failure(_ error: DWORD) -> Int32 {
    noteError(error)
    return -1
  }

  /// Puts the number that POSIX has for one of Windows' errors into `errno`.
  static func noteError(_ error: DWORD = GetLastError()) { _ = _set_errno(number(ofError: error)) }

  static let accessDenied: DWORD = 5
  static let fileNotFound: DWORD = 2

  /// The numbers are those of https://learn.microsoft.com/windows/win32/debug/system-error-codes, without their prefix
  /// `ERROR_`.
  private static func number(ofError error: DWORD) -> Int32 {
    switch error {
    // FILE_NOT_FOUND, PATH_NOT_FOUND, INVALID_DRIVE, BAD_NETPATH, BAD_NET_NAME, INVALID_NAME, BAD_PATHNAME
    case fileNotFound, 3, 15, 53, 67, 123, 161: ENOENT
    // ACCESS_DENIED, SHARING_VIOLATION, LOCK_VIOLATION, CANT_ACCESS_FILE
    case accessDenied, 32, 33, 1920: EACCES
    // TOO_MANY_OPEN_FILES
    case 4: EMFILE
    // INVALID_HANDLE
    case 6: EBADF
    // NOT_ENOUGH_MEMORY, OUTOFMEMORY
    case 8, 14: ENOMEM
    // NOT_SAME_DEVICE
    case 17: EXDEV
    // WRITE_PROTECT
    case 19: EROFS
    // NOT_READY, DEV_NOT_EXIST, DEVICE_NOT_CONNECTED
    case 21, 55, 1167: ENODEV
    // HANDLE_DISK_FULL, DISK_FULL
    case 39, 112: ENOSPC
    // INVALID_FUNCTION, NOT_SUPPORTED
    case 1, 50: ENOTSUP
    // FILE_EXISTS, ALREADY_EXISTS
    case 80, 183: EEXIST
    // INVALID_PARAMETER
    case 87: EINVAL
    // DIR_NOT_EMPTY
    case 145: ENOTEMPTY
    // FILENAME_EXCED_RANGE
    case 206: ENAMETOOLONG
    // FILE_TOO_LARGE
    case 223: EFBIG
    // DIRECTORY
    case 267: ENOTDIR
    // TOO_MANY_LINKS
    case 1142: EMLINK
    // DISK_QUOTA_EXCEEDED
    case 1295: SystemCall.overQuota
    // PRIVILEGE_NOT_HELD
    case 1314: EPERM
    // CANT_RESOLVE_FILENAME
    case 1921: ELOOP
    default: EIO
    }
  }
}
#endif
