// https://learn.microsoft.com/windows/win32/winprog/windows-data-types
public typealias DWORD = UInt32
public typealias BYTE = UInt8
public typealias LPCWSTR = UnsafePointer<UInt16>
public typealias LPWSTR = UnsafeMutablePointer<UInt16>
public typealias HLOCAL = UnsafeMutableRawPointer

// Swift imports Windows' BOOL as Bool where a function returns it.

/// https://learn.microsoft.com/windows/win32/api/dpapi/ (DATA_BLOB of wincrypt.h)
public struct DATA_BLOB {
  public var cbData: DWORD
  public var pbData: UnsafeMutablePointer<BYTE>?

  public init() { (cbData, pbData) = (0, nil) }
  public init(cbData: DWORD, pbData: UnsafeMutablePointer<BYTE>?) { (self.cbData, self.pbData) = (cbData, pbData) }
}

/// https://learn.microsoft.com/windows/win32/api/dpapi/ns-dpapi-cryptprotect_promptstruct
public struct CRYPTPROTECT_PROMPTSTRUCT {}

// A macro without a type: an Int32 in Swift.
public let CRYPTPROTECT_UI_FORBIDDEN: Int32 = 1

/// https://learn.microsoft.com/windows/win32/api/dpapi/nf-dpapi-cryptprotectdata
public func CryptProtectData(
  _ pDataIn: UnsafeMutablePointer<DATA_BLOB>!, _ szDataDescr: LPCWSTR!,
  _ pOptionalEntropy: UnsafeMutablePointer<DATA_BLOB>!, _ pvReserved: UnsafeMutableRawPointer!,
  _ pPromptStruct: UnsafeMutablePointer<CRYPTPROTECT_PROMPTSTRUCT>!, _ dwFlags: DWORD,
  _ pDataOut: UnsafeMutablePointer<DATA_BLOB>!
) -> Bool { false }

/// https://learn.microsoft.com/windows/win32/api/dpapi/nf-dpapi-cryptunprotectdata
public func CryptUnprotectData(
  _ pDataIn: UnsafeMutablePointer<DATA_BLOB>!, _ ppszDataDescr: UnsafeMutablePointer<LPWSTR?>!,
  _ pOptionalEntropy: UnsafeMutablePointer<DATA_BLOB>!, _ pvReserved: UnsafeMutableRawPointer!,
  _ pPromptStruct: UnsafeMutablePointer<CRYPTPROTECT_PROMPTSTRUCT>!, _ dwFlags: DWORD,
  _ pDataOut: UnsafeMutablePointer<DATA_BLOB>!
) -> Bool { false }

/// https://learn.microsoft.com/windows/win32/api/errhandlingapi/nf-errhandlingapi-getlasterror
public func GetLastError() -> DWORD { 0 }
/// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-localfree
public func LocalFree(_ hMem: HLOCAL!) -> HLOCAL? { nil }

// MARK: Files

public typealias HANDLE = UnsafeMutableRawPointer
public typealias WCHAR = UInt16
public typealias LONGLONG = Int64
public typealias ULONG = UInt32
public typealias SIZE_T = UInt64
public typealias LPCVOID = UnsafeRawPointer
public typealias LPVOID = UnsafeMutableRawPointer

// handleapi.h; a pointer made of -1, which Swift's own part of the module declares.
public nonisolated(unsafe) let INVALID_HANDLE_VALUE = HANDLE(bitPattern: -1)!

// https://learn.microsoft.com/windows/win32/secauthz/generic-access-rights; the first is too large for an Int32.
public let GENERIC_READ: DWORD = 0x8000_0000
public let GENERIC_WRITE: Int32 = 0x4000_0000
// https://learn.microsoft.com/windows/win32/fileio/file-access-rights-constants
public let FILE_READ_ATTRIBUTES: Int32 = 0x80
// https://learn.microsoft.com/windows/win32/fileio/file-attribute-constants
public let FILE_ATTRIBUTE_DIRECTORY: Int32 = 0x10
public let FILE_ATTRIBUTE_REPARSE_POINT: Int32 = 0x400

/// https://learn.microsoft.com/windows/win32/api/minwinbase/ns-minwinbase-overlapped; a union and a structure without
/// names, whose members Swift sees as the type's own.
public struct OVERLAPPED {
  public var Offset: DWORD
  public var OffsetHigh: DWORD
  public var hEvent: HANDLE?

  public init() { (Offset, OffsetHigh, hEvent) = (0, 0, nil) }
}

/// https://learn.microsoft.com/windows/win32/api/wtypesbase/ns-wtypesbase-security_attributes
public struct SECURITY_ATTRIBUTES {}

/// https://learn.microsoft.com/windows/win32/api/minwinbase/ns-minwinbase-filetime
public struct FILETIME {}

/// https://learn.microsoft.com/windows/win32/api/winnt/ns-winnt-large_integer-r1
public struct LARGE_INTEGER {
  public var QuadPart: LONGLONG

  public init() { QuadPart = 0 }
}

// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew
public let FILE_SHARE_READ: Int32 = 1
public let FILE_SHARE_WRITE: Int32 = 2
public let FILE_SHARE_DELETE: Int32 = 4
public let CREATE_NEW: Int32 = 1
public let CREATE_ALWAYS: Int32 = 2
public let OPEN_EXISTING: Int32 = 3
public let OPEN_ALWAYS: Int32 = 4
public let FILE_FLAG_BACKUP_SEMANTICS: Int32 = 0x0200_0000
public let FILE_FLAG_OPEN_REPARSE_POINT: Int32 = 0x0020_0000
public func CreateFileW(
  _ lpFileName: LPCWSTR!, _ dwDesiredAccess: DWORD, _ dwShareMode: DWORD,
  _ lpSecurityAttributes: UnsafeMutablePointer<SECURITY_ATTRIBUTES>!, _ dwCreationDisposition: DWORD,
  _ dwFlagsAndAttributes: DWORD, _ hTemplateFile: HANDLE!
) -> HANDLE! { nil }

/// https://learn.microsoft.com/windows/win32/api/handleapi/nf-handleapi-closehandle
@discardableResult
public func CloseHandle(_ hObject: HANDLE!) -> Bool { false }

/// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-readfile
public func ReadFile(
  _ hFile: HANDLE!, _ lpBuffer: LPVOID!, _ nNumberOfBytesToRead: DWORD,
  _ lpNumberOfBytesRead: UnsafeMutablePointer<DWORD>!, _ lpOverlapped: UnsafeMutablePointer<OVERLAPPED>!
) -> Bool { false }
/// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-writefile
public func WriteFile(
  _ hFile: HANDLE!, _ lpBuffer: LPCVOID!, _ nNumberOfBytesToWrite: DWORD,
  _ lpNumberOfBytesWritten: UnsafeMutablePointer<DWORD>!, _ lpOverlapped: UnsafeMutablePointer<OVERLAPPED>!
) -> Bool { false }
/// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-flushfilebuffers
public func FlushFileBuffers(_ hFile: HANDLE!) -> Bool { false }

// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex
public let LOCKFILE_FAIL_IMMEDIATELY: Int32 = 1
public let LOCKFILE_EXCLUSIVE_LOCK: Int32 = 2
public func LockFileEx(
  _ hFile: HANDLE!, _ dwFlags: DWORD, _ dwReserved: DWORD, _ nNumberOfBytesToLockLow: DWORD,
  _ nNumberOfBytesToLockHigh: DWORD, _ lpOverlapped: UnsafeMutablePointer<OVERLAPPED>!
) -> Bool { false }
/// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-unlockfileex
public func UnlockFileEx(
  _ hFile: HANDLE!, _ dwReserved: DWORD, _ nNumberOfBytesToUnlockLow: DWORD, _ nNumberOfBytesToUnlockHigh: DWORD,
  _ lpOverlapped: UnsafeMutablePointer<OVERLAPPED>!
) -> Bool { false }

// https://learn.microsoft.com/windows/win32/api/memoryapi/nf-memoryapi-createfilemappingw
public let PAGE_READONLY: Int32 = 2
public func CreateFileMappingW(
  _ hFile: HANDLE!, _ lpFileMappingAttributes: UnsafeMutablePointer<SECURITY_ATTRIBUTES>!, _ flProtect: DWORD,
  _ dwMaximumSizeHigh: DWORD, _ dwMaximumSizeLow: DWORD, _ lpName: LPCWSTR!
) -> HANDLE! { nil }
// https://learn.microsoft.com/windows/win32/api/memoryapi/nf-memoryapi-mapviewoffile
public let FILE_MAP_READ: Int32 = 4
public func MapViewOfFile(
  _ hFileMappingObject: HANDLE!, _ dwDesiredAccess: DWORD, _ dwFileOffsetHigh: DWORD, _ dwFileOffsetLow: DWORD,
  _ dwNumberOfBytesToMap: SIZE_T
) -> LPVOID! { nil }
/// https://learn.microsoft.com/windows/win32/api/memoryapi/nf-memoryapi-unmapviewoffile
@discardableResult
public func UnmapViewOfFile(_ lpBaseAddress: LPCVOID!) -> Bool { false }

// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getfiletype
public let FILE_TYPE_DISK: Int32 = 1
public func GetFileType(_ hFile: HANDLE!) -> DWORD { 0 }

/// https://learn.microsoft.com/windows/win32/api/fileapi/ns-fileapi-by_handle_file_information
public struct BY_HANDLE_FILE_INFORMATION {
  public var dwFileAttributes: DWORD
  public var ftCreationTime: FILETIME
  public var ftLastAccessTime: FILETIME
  public var ftLastWriteTime: FILETIME
  public var dwVolumeSerialNumber: DWORD
  public var nFileSizeHigh: DWORD
  public var nFileSizeLow: DWORD
  public var nNumberOfLinks: DWORD
  public var nFileIndexHigh: DWORD
  public var nFileIndexLow: DWORD

  public init() {
    (ftCreationTime, ftLastAccessTime, ftLastWriteTime) = (FILETIME(), FILETIME(), FILETIME())
    (dwFileAttributes, dwVolumeSerialNumber, nFileSizeHigh, nFileSizeLow) = (0, 0, 0, 0)
    (nNumberOfLinks, nFileIndexHigh, nFileIndexLow) = (0, 0, 0)
  }
}
/// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getfileinformationbyhandle
public func GetFileInformationByHandle(
  _ hFile: HANDLE!, _ lpFileInformation: UnsafeMutablePointer<BY_HANDLE_FILE_INFORMATION>!
) -> Bool { false }

/// https://learn.microsoft.com/windows/win32/api/minwinbase/ne-minwinbase-file_info_by_handle_class; an enumeration of
/// C, whose cases are constants in Swift.
public struct FILE_INFO_BY_HANDLE_CLASS: Sendable {}
public let FileBasicInfo = FILE_INFO_BY_HANDLE_CLASS()
public let FileAttributeTagInfo = FILE_INFO_BY_HANDLE_CLASS()

/// https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_basic_info
public struct FILE_BASIC_INFO {
  public var CreationTime: LARGE_INTEGER
  public var LastAccessTime: LARGE_INTEGER
  public var LastWriteTime: LARGE_INTEGER
  public var ChangeTime: LARGE_INTEGER
  public var FileAttributes: DWORD

  public init() {
    (CreationTime, LastAccessTime) = (LARGE_INTEGER(), LARGE_INTEGER())
    (LastWriteTime, ChangeTime, FileAttributes) = (LARGE_INTEGER(), LARGE_INTEGER(), 0)
  }
}
/// https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_attribute_tag_info
public struct FILE_ATTRIBUTE_TAG_INFO {
  public var FileAttributes: DWORD
  public var ReparseTag: DWORD

  public init() { (FileAttributes, ReparseTag) = (0, 0) }
}
/// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-getfileinformationbyhandleex
public func GetFileInformationByHandleEx(
  _ hFile: HANDLE!, _ FileInformationClass: FILE_INFO_BY_HANDLE_CLASS, _ lpFileInformation: LPVOID!,
  _ dwBufferSize: DWORD
) -> Bool { false }

// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getfinalpathnamebyhandlew
public let FILE_NAME_NORMALIZED: Int32 = 0
public let VOLUME_NAME_DOS: Int32 = 0
public func GetFinalPathNameByHandleW(
  _ hFile: HANDLE!, _ lpszFilePath: LPWSTR!, _ cchFilePath: DWORD, _ dwFlags: DWORD
) -> DWORD { 0 }

// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-movefileexw
public let MOVEFILE_REPLACE_EXISTING: Int32 = 1
public let MOVEFILE_WRITE_THROUGH: Int32 = 8
public func MoveFileExW(_ lpExistingFileName: LPCWSTR!, _ lpNewFileName: LPCWSTR!, _ dwFlags: DWORD) -> Bool { false }
/// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-deletefilew
public func DeleteFileW(_ lpFileName: LPCWSTR!) -> Bool { false }
/// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createdirectoryw
public func CreateDirectoryW(
  _ lpPathName: LPCWSTR!, _ lpSecurityAttributes: UnsafeMutablePointer<SECURITY_ATTRIBUTES>!
) -> Bool { false }
/// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-removedirectoryw
public func RemoveDirectoryW(_ lpPathName: LPCWSTR!) -> Bool { false }

/// https://learn.microsoft.com/windows/win32/api/minwinbase/ns-minwinbase-win32_find_dataw
public struct WIN32_FIND_DATAW {
  public var dwFileAttributes: DWORD
  /// 260 of them, an array of C, which is a tuple in Swift.
  public var cFileName: (WCHAR, WCHAR, WCHAR)

  public init() { (dwFileAttributes, cFileName) = (0, (0, 0, 0)) }
}
/// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-findfirstfilew
public func FindFirstFileW(
  _ lpFileName: LPCWSTR!, _ lpFindFileData: UnsafeMutablePointer<WIN32_FIND_DATAW>!
) -> HANDLE! { nil }
/// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-findnextfilew
public func FindNextFileW(
  _ hFindFile: HANDLE!, _ lpFindFileData: UnsafeMutablePointer<WIN32_FIND_DATAW>!
) -> Bool { false }
/// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-findclose
@discardableResult
public func FindClose(_ hFindFile: HANDLE!) -> Bool { false }

// MARK: The process

/// https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-getcurrentprocessid
public func GetCurrentProcessId() -> DWORD { 0 }
/// https://learn.microsoft.com/windows/console/getstdhandle
public func GetStdHandle(_ nStdHandle: DWORD) -> HANDLE! { nil }

// MARK: Locks

/// https://learn.microsoft.com/windows/win32/sync/slim-reader-writer--srw--locks
public struct SRWLOCK {}
/// https://learn.microsoft.com/windows/win32/api/synchapi/nf-synchapi-initializesrwlock
public func InitializeSRWLock(_ SRWLock: UnsafeMutablePointer<SRWLOCK>!) {}
/// https://learn.microsoft.com/windows/win32/api/synchapi/nf-synchapi-acquiresrwlockexclusive
public func AcquireSRWLockExclusive(_ SRWLock: UnsafeMutablePointer<SRWLOCK>!) {}
/// https://learn.microsoft.com/windows/win32/api/synchapi/nf-synchapi-releasesrwlockexclusive
public func ReleaseSRWLockExclusive(_ SRWLock: UnsafeMutablePointer<SRWLOCK>!) {}

/// https://learn.microsoft.com/windows/win32/sync/condition-variables
public struct CONDITION_VARIABLE {}
/// https://learn.microsoft.com/windows/win32/api/synchapi/nf-synchapi-initializeconditionvariable
public func InitializeConditionVariable(_ ConditionVariable: UnsafeMutablePointer<CONDITION_VARIABLE>!) {}
/// https://learn.microsoft.com/windows/win32/api/synchapi/nf-synchapi-wakeallconditionvariable
public func WakeAllConditionVariable(_ ConditionVariable: UnsafeMutablePointer<CONDITION_VARIABLE>!) {}
// https://learn.microsoft.com/windows/win32/api/synchapi/nf-synchapi-sleepconditionvariablesrw (INFINITE of winbase.h,
// too large for an Int32)
public let INFINITE: DWORD = 0xFFFF_FFFF
public func SleepConditionVariableSRW(
  _ ConditionVariable: UnsafeMutablePointer<CONDITION_VARIABLE>!, _ SRWLock: UnsafeMutablePointer<SRWLOCK>!,
  _ dwMilliseconds: DWORD, _ Flags: ULONG
) -> Bool { false }
