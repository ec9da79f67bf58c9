#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The codes that take the place of recovery codes, from before the request until they were shown: if the response is
/// lost, the same request has the same result.
extension SyncState {
  private struct NextCodes: Codable {
    struct Entry: Codable {
      /// Of the code that was typed, the SHA-256.
      var used: ContentHash
      /// The code that takes its place.
      var next: String
    }
    var format: Int? = SyncState.recoveryFormat
    /// In the order in which the others were typed.
    var codes: [Entry]
  }
  /// What a file of any format has; one without it has the first format.
  private struct Header: Decodable {
    var format: Int?
  }

  private static let recoveryName = "recovery.json"
  private static let recoveryFormat = 1
  /// More than anyone needs: an attempt whose response is lost leaves one.
  private static let maximumCodes = 16

  private var recoveryFile: URL { url.appendingPathComponent(Self.recoveryName) }

  /// Returns the code that takes the place of `code`, always the same one until it is forgotten. Another code that is
  /// typed meanwhile changes nothing: the server may have used this one already.
  func nextCode(after code: RecoveryCode) throws -> RecoveryCode {
    let known = try readCodes()
    if let entry = known.last(where: { $0.used == code.digest }) { return try RecoveryCode(typed: entry.next) }
    var source = SystemRandomNumberGenerator()
    let next = RecoveryCode(using: &source)
    let all = known + [NextCodes.Entry(used: code.digest, next: next.text)]
    try writeCodes(Array(all.suffix(Self.maximumCodes)))
    return next
  }

  /// Keeps only the code that takes the place of `code`, by which this device has come back: it has to be shown.
  func keepNextCode(after code: RecoveryCode) throws {
    try writeCodes(readCodes().filter { $0.used == code.digest })
  }

  /// Forgets what was to take the place of a code that the server doesn't know.
  func forgetNextCode(after code: RecoveryCode) throws {
    try writeCodes(readCodes().filter { $0.used != code.digest })
  }

  func forgetNextCodes() throws { try writeCodes([]) }

  /// Whether this device has come back by this code, and the next one wasn't shown yet.
  func hasUsed(_ entry: SyncEntry) throws -> Bool {
    guard case .recovery(let code) = entry else { return false }
    return try readCodes().contains { $0.used == code.digest }
  }

  /// Returns the code that this device must still show; nil if there is none. Before it has come back, the code may be
  /// in force, or not.
  func unshownCode() throws -> RecoveryCode? { try readCodes().last.map { try RecoveryCode(typed: $0.next) } }

  private func writeCodes(_ codes: [NextCodes.Entry]) throws {
    if !codes.isEmpty { return try write(NextCodes(codes: codes), to: Self.recoveryName) }
    guard FileManager.default.fileExists(atPath: recoveryFile.path) else { return }
    try FileManager.default.removeItem(at: recoveryFile)
  }

  private func readCodes() throws -> [NextCodes.Entry] {
    guard let data = try AtomicFile.read(recoveryFile, maximumBytes: Self.maximumBytes) else { return [] }
    let codes: [NextCodes.Entry]
    do {
      let format = try JSONDecoder().decode(Header.self, from: data).format ?? Self.recoveryFormat
      guard format <= Self.recoveryFormat else {
        throw StoreError(
          .newerFormat, "a newer version has written the recovery code in \(recoveryFile.path), in format \(format)")
      }
      codes = try JSONDecoder().decode(NextCodes.self, from: data).codes
    } catch let error as DecodingError {
      throw unreadable(ErrorReason.text(error))
    }
    for entry in codes {
      do { _ = try RecoveryCode(typed: entry.next) } catch { throw unreadable(error.message) }
    }
    return codes
  }

  private func unreadable(_ reason: String) -> CommandFailure {
    CommandFailure(
      .data, "the recovery code in \(recoveryFile.path) can't be read: \(reason)",
      next: "move the file away; a new code can be made with --new-recovery-code")
  }
}
#endif
