#if os(Windows)
public import Foundation
import KeepsakeStore
import WinSDK

/// Files that Windows encrypts for the current user (DPAPI): in a copy on another machine, or for another user, they
/// are nothing.
///
/// ```swift
/// let folder = try StorageFolders("com.example.space").folder(for: .state)
/// let game = try GameData.open("com.example.space", credentials: .store(DataProtectionStore(in: folder)))
/// ```
///
/// Any program of the same user can decrypt them. What Windows can't decrypt any more, because the user or the machine
/// is another one or an administrator has reset the password, counts as lost.
public struct DataProtectionStore: CredentialStore {
  /// Windows adds some hundred bytes.
  private static let maximumFileBytes = 2 * CredentialStorage.maximumBytes
  /// Not the key that it was encrypted with (`NTE_BAD_KEY_STATE`, `NTE_BAD_DATA`, `ERROR_INVALID_DATA`).
  private static let lostErrors: Set<UInt32> = [0x8009_000B, 0x8009_0005, 13]

  private let folder: URL

  /// Describes files in a folder. Doesn't create any.
  ///
  /// - Parameter folder: The folder, which must exist. It may contain other files.
  public init(in folder: URL) { self.folder = folder }

  public func read(_ key: String) throws -> Data? {
    guard let encrypted = try AtomicFile.read(file(key), maximumBytes: Self.maximumFileBytes) else { return nil }
    do {
      return try Self.convert(encrypted) { CryptUnprotectData(&$0, nil, nil, nil, nil, Self.flags, &$1) }
    } catch let failure as Failure where Self.lostErrors.contains(failure.number) {
      return nil
    } catch let failure as Failure {
      throw failure.error("decrypting")
    }
  }

  public func write(_ data: Data, for key: String) throws {
    let encrypted: Data
    do {
      encrypted = try Self.convert(data) { CryptProtectData(&$0, nil, nil, nil, nil, Self.flags, &$1) }
    } catch let failure as Failure {
      throw failure.error("encrypting")
    }
    try AtomicFile.write(encrypted, to: file(key), access: .ownerOnly)
  }

  public func remove(_ key: String) throws {
    do {
      try FileManager.default.removeItem(at: file(key))
    } catch CocoaError.fileNoSuchFile {
      // It has been removed before.
    }
  }

  private func file(_ key: String) -> URL { folder.appendingPathComponent("\(key).credentials") }

  private struct Failure: Error {
    var number: UInt32

    func error(_ doing: String) -> StoreError {
      StoreError(.io, "\(doing) with the data protection of Windows failed: error \(number)")
    }
  }

  /// Never shows a window: nobody may be there to answer.
  private static var flags: DWORD { DWORD(CRYPTPROTECT_UI_FORBIDDEN) }

  private static func convert(
    _ data: Data, _ call: (_ input: inout DATA_BLOB, _ output: inout DATA_BLOB) -> Bool
  ) throws -> Data {
    var bytes = [UInt8](data)
    return try bytes.withUnsafeMutableBufferPointer { buffer in
      var input = DATA_BLOB(cbData: DWORD(buffer.count), pbData: buffer.baseAddress)
      var output = DATA_BLOB()
      guard call(&input, &output) else { throw Failure(number: UInt32(GetLastError())) }
      // Windows allocates the result, and the caller frees it.
      defer { _ = LocalFree(output.pbData) }
      guard let result = output.pbData else { return Data() }
      return Data(bytes: result, count: Int(output.cbData))
    }
  }
}
#endif
