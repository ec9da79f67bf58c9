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
