#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeMirror
import KeepsakeStore
import KeepsakeSync

/// What a synced folder keeps about itself: a store, the device's credentials, the table of placed files.
struct SyncState {
  /// The state's folder inside the synced one.
  static let folderName = SavePath.reservedName
  private static let credentialsName = "credentials.json"
  private static let recoveryName = "recovery.json"
  /// Credentials have a few hundred bytes.
  private static let maximumCredentialsBytes = 64 * 1024

  /// The code that takes the place of a recovery code, from before the request until it was shown: if the response is
  /// lost, the same request has the same result.
  private struct NextCode: Codable {
    var format = SyncState.recoveryFormat
    /// Of the code that was typed, the SHA-256.
    var used: ContentHash
    var next: String
  }
  private static let recoveryFormat = 1

  let url: URL

  /// Opens the state of `folder`, or the folder that was named instead, and creates it if it doesn't exist.
  ///
  /// - Throws: `StoreError` if the folder can't be created.
  init(folder: String, named: String?) throws {
    if let named {
      url = URL(fileURLWithPath: named, isDirectory: true)
    } else {
      url = URL(fileURLWithPath: folder, isDirectory: true).appendingPathComponent(Self.folderName, isDirectory: true)
    }
    // One person's credentials and saves: readable by that person only.
    try StoreFolder.create(url, isPrivate: true)
  }

  /// Returns the credentials of this device; nil before it registered.
  func credentials() throws -> CloudCredentials? {
    let file = url.appendingPathComponent(Self.credentialsName)
    guard FileManager.default.fileExists(atPath: file.path) else { return nil }
    do {
      let handle = try FileHandle(forReadingFrom: file)
      let data = try handle.read(upToCount: Self.maximumCredentialsBytes) ?? Data()
      return try JSONDecoder().decode(CloudCredentials.self, from: data)
    } catch {
      throw CommandFailure(
        .data, "the credentials in \(file.path) can't be read: \(ErrorReason.text(error))",
        next: "remove the file and join the player again with --join; the files in the folder are kept")
    }
  }

  func keep(_ credentials: CloudCredentials) throws { try write(credentials, to: Self.credentialsName) }

  private func write(_ value: some Encodable, to name: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try AtomicFile.write(try encoder.encode(value), to: url.appendingPathComponent(name), access: .ownerOnly)
  }

  // MARK: Recovery codes

  /// Returns the code that takes the place of `code`, always the same one until it is forgotten.
  func nextCode(after code: RecoveryCode) throws -> RecoveryCode {
    if let known = try readNextCode(), known.used == code.digest { return try RecoveryCode(typed: known.next) }
    var source = SystemRandomNumberGenerator()
    let next = RecoveryCode(using: &source)
    try write(NextCode(used: code.digest, next: next.text), to: Self.recoveryName)
    return next
  }

  /// Whether this device has come back by this code, and the next one wasn't shown yet.
  func hasUsed(_ entry: SyncEntry) throws -> Bool {
    guard case .recovery(let code) = entry else { return false }
    return try readNextCode()?.used == code.digest
  }

  /// Returns the code that a device that has come back must still show; nil if there is none.
  func unshownCode() throws -> RecoveryCode? { try readNextCode().map { try RecoveryCode(typed: $0.next) } }

  func forgetNextCode() throws {
    let file = url.appendingPathComponent(Self.recoveryName)
    guard FileManager.default.fileExists(atPath: file.path) else { return }
    try FileManager.default.removeItem(at: file)
  }

  private func readNextCode() throws -> NextCode? {
    let file = url.appendingPathComponent(Self.recoveryName)
    guard let data = try AtomicFile.read(file, maximumBytes: Self.maximumCredentialsBytes) else { return nil }
    do {
      let code = try JSONDecoder().decode(NextCode.self, from: data)
      guard code.format == Self.recoveryFormat, (try? RecoveryCode(typed: code.next)) != nil else {
        throw CommandFailure(.data, "its format is \(code.format)")
      }
      return code
    } catch {
      throw CommandFailure(
        .data, "the recovery code in \(Printable.text(file.path)) can't be read: \(ErrorReason.text(error))",
        next: "move the file away; a new code can be made with --new-recovery-code")
    }
  }
}
#endif
