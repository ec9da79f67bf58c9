#if os(Windows)
package import Foundation

/// Files, by Windows' functions, with what `SystemCall+Files.swift` says about each. Never run there yet.
extension SystemCall {
  package static func openFile(_ path: String, _ purpose: FileOpening, mode: UInt16 = 0) -> Int32 {
    guard let handle = purpose.isPlain ? WindowsFile.openPlain(path, purpose.own) : WindowsFile.open(path, purpose.own)
    else { return -1 }
    let number = WindowsFile.number(handle)
    guard number >= 0, purpose.isFolder else { return number }
    let status = FileStatus(of: number)
    guard status?.kind != .folder else { return number }
    closeFile(number)
    if status != nil { _ = _set_errno(ENOTDIR) }
    return -1
  }

  package static func openFile(_ name: String, in folder: Int32, _ purpose: FileOpening) -> Int32 {
    guard let path = WindowsFile.path(of: name, in: folder) else { return -1 }
    return openFile(path, purpose)
  }

  package static func closeFile(_ file: Int32) { _ = _close(file) }

  package static func readFile(_ file: Int32, _ target: UnsafeMutableRawPointer?, _ count: Int, at offset: Int) -> Int {
    guard let handle = WindowsFile.handle(file) else { return -1 }
    var place = OVERLAPPED()
    place.Offset = DWORD(truncatingIfNeeded: offset)
    place.OffsetHigh = DWORD(truncatingIfNeeded: offset >> 32)
    var done: DWORD = 0
    guard ReadFile(handle, target, DWORD(min(count, largestPart)), &done, &place) else {
      let error = GetLastError()
      // HANDLE_EOF: there is nothing at the offset.
      return error == 38 ? 0 : Int(WindowsFile.failure(error))
    }
    return Int(done)
  }

  package static func write(_ file: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    guard let handle = WindowsFile.handle(file) else { return -1 }
    var done: DWORD = 0
    guard WriteFile(handle, bytes, DWORD(min(count, largestPart)), &done, nil) else {
      return Int(WindowsFile.failure(GetLastError()))
    }
    return Int(done)
  }

  /// What one call reads or writes at most: its count has 32 bits.
  private static let largestPart = 1 << 30

  package static func mapFile(_ file: Int32, size: Int) -> Data? {
    guard let handle = WindowsFile.handle(file) else { return nil }
    guard let mapping = CreateFileMappingW(handle, nil, DWORD(PAGE_READONLY), 0, 0, nil) else {
      WindowsFile.noteError()
      return nil
    }
    // What it shows keeps it.
    defer { CloseHandle(mapping) }
    guard let start = MapViewOfFile(mapping, DWORD(FILE_MAP_READ), 0, 0, SIZE_T(size)) else {
      WindowsFile.noteError()
      return nil
    }
    return Data(bytesNoCopy: start, count: size, deallocator: .custom { start, _ in UnmapViewOfFile(start) })
  }

  package static func lockFile(_ file: Int32) -> Int32 {
    guard let handle = WindowsFile.handle(file) else { return -1 }
    var place = OVERLAPPED()
    let flags = DWORD(LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY)
    guard !LockFileEx(handle, flags, 0, 1, 0, &place) else { return 0 }
    let error = GetLastError()
    // LOCK_VIOLATION, IO_PENDING
    guard error == 33 || error == 997 else { return WindowsFile.failure(error) }
    _ = _set_errno(EWOULDBLOCK)
    return -1
  }

  package static func unlockFile(_ file: Int32) {
    guard let handle = WindowsFile.handle(file) else { return }
    var place = OVERLAPPED()
    _ = UnlockFileEx(handle, 0, 1, 0, &place)
  }

  // MARK: Names

  package static func isThere(_ path: String) -> Bool { FileStatus(at: path) != nil }

  package static func mayWrite(_ path: String) -> Int32 { FileStatus(at: path) == nil ? -1 : 0 }

  package static func renameFile(_ path: String, _ other: String) -> Int32 {
    var error = move(path, other, DWORD(MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
    // Windows replaces no folder; an empty one is removed first. A crash in between leaves the old name.
    if error == WindowsFile.accessDenied, FileStatus(at: path, followsLinks: false)?.kind == .folder, isThere(other) {
      error = other.withCString(encodedAs: UTF16.self) { RemoveDirectoryW($0) ? 0 : GetLastError() }
      if error == 0 { error = move(path, other, DWORD(MOVEFILE_WRITE_THROUGH)) }
    }
    return error == 0 ? 0 : WindowsFile.failure(error)
  }

  package static func nameFile(_ path: String, _ free: String) -> Int32 {
    // Not by a second link: this waits for the disk, and works on every file system.
    let error = move(path, free, DWORD(MOVEFILE_WRITE_THROUGH))
    return error == 0 ? 0 : WindowsFile.failure(error)
  }

  /// Returns 0, or Windows' error.
  private static func move(_ path: String, _ other: String, _ flags: DWORD) -> DWORD {
    path.withCString(encodedAs: UTF16.self) { path in
      other.withCString(encodedAs: UTF16.self) { MoveFileExW(path, $0, flags) ? 0 : GetLastError() }
    }
  }

  @discardableResult
  package static func removeFile(_ path: String) -> Int32 {
    let error = path.withCString(encodedAs: UTF16.self) { DeleteFileW($0) ? 0 : GetLastError() }
    return error == 0 ? 0 : WindowsFile.failure(error)
  }

  package static func makeFolder(_ path: String) -> Int32 {
    let error = path.withCString(encodedAs: UTF16.self) { CreateDirectoryW($0, nil) ? 0 : GetLastError() }
    return error == 0 ? 0 : WindowsFile.failure(error)
  }

  package static func forEachName<Failure: Error>(
    in folder: Int32, _ body: (_ name: [UInt8]) throws(Failure) -> Void
  ) throws(Failure) -> Int32 {
    defer { closeFile(folder) }
    guard let pattern = WindowsFile.path(of: "*", in: folder) else { return errno }
    var entry = WIN32_FIND_DATAW()
    let (search, error) = pattern.withCString(encodedAs: UTF16.self) { (FindFirstFileW($0, &entry), GetLastError()) }
    guard let search, search != INVALID_HANDLE_VALUE else {
      // The top folder of an empty disk has no entries, not even its own.
      if error == WindowsFile.fileNotFound { return 0 }
      WindowsFile.noteError(error)
      return errno
    }
    defer { FindClose(search) }
    while true {
      let name = name(of: entry)
      if name != [UInt8(ascii: ".")], name != [UInt8(ascii: "."), UInt8(ascii: ".")] { try body(name) }
      guard !FindNextFileW(search, &entry) else { continue }
      let error = GetLastError()
      // NO_MORE_FILES
      if error == 18 { return 0 }
      WindowsFile.noteError(error)
      return errno
    }
  }

  /// Returns a name in UTF-8; bytes that aren't UTF-8 if it isn't UTF-16.
  private static func name(of entry: WIN32_FIND_DATAW) -> [UInt8] {
    let units = withUnsafeBytes(of: entry.cFileName) { Array($0.bindMemory(to: UInt16.self).prefix { $0 != 0 }) }
    if let name = String(validating: units, as: UTF16.self) { return Array(name.utf8) }
    return [0xFF] + Array(String(decoding: units, as: UTF16.self).utf8)
  }

  // MARK: The process

  package static var processNumber: Int32 { Int32(bitPattern: GetCurrentProcessId()) }

  package static func writeError(_ text: String) {
    // STD_ERROR_HANDLE, whose macro Swift doesn't import. A program with windows has none.
    guard let handle = GetStdHandle(DWORD(bitPattern: -12)), handle != INVALID_HANDLE_VALUE else { return }
    var text = text
    var done: DWORD = 0
    // If this fails, there is nowhere left to report to.
    _ = text.withUTF8 { WriteFile(handle, $0.baseAddress, DWORD($0.count), &done, nil) }
  }
}

extension FileOpening {
  fileprivate var isFolder: Bool { self == .folder || self == .plainFolder }
  fileprivate var isPlain: Bool { self == .readingPlain || self == .plainFolder }

  fileprivate var own: WindowsFile.Purpose {
    switch self {
    case .reading, .readingAtOnce, .readingPlain: WindowsFile.Purpose(access: DWORD(GENERIC_READ))
    // So that the folder keeps its path, by which its entries are opened.
    case .folder, .plainFolder: WindowsFile.Purpose(access: DWORD(GENERIC_READ), isMovable: false)
    // Who only reads may not flush.
    case .syncing: WindowsFile.Purpose(access: DWORD(GENERIC_WRITE))
    case .creating: WindowsFile.Purpose(access: DWORD(GENERIC_WRITE), creation: DWORD(CREATE_NEW))
    case .emptying: WindowsFile.Purpose(access: DWORD(GENERIC_WRITE), creation: DWORD(CREATE_ALWAYS))
    case .locking: WindowsFile.Purpose(access: DWORD(GENERIC_READ) | DWORD(GENERIC_WRITE), creation: DWORD(OPEN_ALWAYS))
    }
  }
}
#endif
