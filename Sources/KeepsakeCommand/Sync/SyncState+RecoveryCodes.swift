#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore

/// Recovery codes that may be in force and that nobody has seen yet, each kept from before the request that puts it in
/// force until it was shown. Which of them is in force, only the server knows.
extension SyncState {
  private struct UnseenCodes: Codable {
    var format: Int? = SyncState.recoveryFormat
    /// The oldest first.
    var codes: [Entry]
  }
  private struct Entry: Codable {
    /// Of the code that was typed, the SHA-256; nil if the code takes the place of whatever was in force.
    var used: ContentHash?
    /// The code itself.
    var next: String
    /// The server that was asked first.
    var url: URL
    /// Whether it was made for the player whom this device belongs to now. Without it, it may be somebody else's.
    var isOwn: Bool?
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

  /// Returns the code that takes the place of `code`, always the same one: if the response is lost, the same request
  /// has the same result. Another code that is typed meanwhile changes nothing: the server may have used this one
  /// already.
  func nextCode(after code: RecoveryCode, at server: URL) throws -> RecoveryCode {
    let known = try readCodes()
    if let entry = known.last(where: { $0.used == code.digest }) { return try RecoveryCode(typed: entry.next) }
    return try add(to: known) { Entry(used: code.digest, next: $0, url: server) }
  }

  /// Returns a new code for this device's player.
  func newCode(at server: URL) throws -> RecoveryCode {
    try add(to: try readCodes()) { Entry(next: $0, url: server, isOwn: true) }
  }

  private func add(to known: [Entry], _ entry: (String) -> Entry) throws -> RecoveryCode {
    var source = SystemRandomNumberGenerator()
    let code = RecoveryCode(using: &source)
    try writeCodes((known + [entry(code.text)]).suffix(Self.maximumCodes))
    return code
  }

  /// Records that this device has come back by `code`.
  func hasComeBack(by code: RecoveryCode) throws {
    var codes = try readCodes()
    for index in codes.indices where codes[index].used == code.digest { codes[index].isOwn = true }
    try writeCodes(codes[...])
  }

  /// Forgets what was to take the place of a code that the server doesn't know. Another server than the one that was
  /// asked first knows nothing of it.
  func forgetNextCode(after code: RecoveryCode, at server: URL) throws {
    try writeCodes(readCodes().filter { $0.used != code.digest || $0.url != server }[...])
  }

  /// Whether this device may have come back by this code, and the next one wasn't shown yet.
  func hasUsed(_ entry: SyncEntry) throws -> Bool {
    guard case .recovery(let code) = entry else { return false }
    return try readCodes().contains { $0.used == code.digest }
  }

  /// Whether there are codes that may be in force.
  func hasUnseenCodes() throws -> Bool { try !readCodes().isEmpty }

  /// Returns the code that is in force, by its SHA-256; nil if it isn't one of these.
  func unseenCode(_ digest: ContentHash?) throws -> RecoveryCode? {
    try readCodes().map { try RecoveryCode(typed: $0.next) }.last { $0.digest == digest }
  }

  /// Forgets the codes of this device's player: the one that is in force was shown, or is none of them.
  func forgetOwnCodes(and shown: RecoveryCode? = nil) throws {
    try writeCodes(readCodes().filter { $0.isOwn != true && $0.next != shown?.text }[...])
  }

  private func writeCodes(_ codes: ArraySlice<Entry>) throws {
    if !codes.isEmpty { return try write(UnseenCodes(codes: Array(codes)), to: Self.recoveryName) }
    guard FileManager.default.fileExists(atPath: recoveryFile.path) else { return }
    try FileManager.default.removeItem(at: recoveryFile)
  }

  private func readCodes() throws -> [Entry] {
    guard let data = try AtomicFile.read(recoveryFile, maximumBytes: Self.maximumBytes) else { return [] }
    let codes: [Entry]
    do {
      let format = try JSONDecoder().decode(Header.self, from: data).format ?? Self.recoveryFormat
      guard format <= Self.recoveryFormat else {
        throw StoreError(
          .newerFormat, "a newer version has written the recovery code in \(recoveryFile.path), in format \(format)")
      }
      codes = try JSONDecoder().decode(UnseenCodes.self, from: data).codes
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
