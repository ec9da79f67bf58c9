import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The file in which a device keeps the recovery codes that it has made and the game may not have: to make the same
/// request again if a response is lost, and so that nobody relies on a code that nobody has. Readable by the user only,
/// or in the credential store.
///
/// A file that can't be decoded is set aside, with an incident, and counts as none: no player could delete it, and a
/// new code makes up for all that is lost with it. It is in the folder then, with the codes that it may have, also if
/// there is a credential store. A file of a newer release is left as it is, and refused.
struct RecoveryFile: Sendable {
  private struct Entry: Codable {
    /// The digest of the code that this one takes the place of, if it does.
    var used: String?
    var digest: String
    /// The code itself, if the request may have to be made again.
    var code: String?
    /// Whether the game has got it.
    var isKnown = false
  }
  private struct Contents: Codable {
    var format: Int? = RecoveryFile.format
    var codes: [Entry]
  }
  /// What a file of any format has; one without it has the first format.
  private struct Header: Decodable {
    var format: Int?
  }
  private static let format = 1
  /// More than anyone needs: a failed attempt leaves one.
  private static let maximumEntries = 16
  static let name = "recovery.json"

  private let file: SecretFile
  /// The open store in the same folder.
  private let store: Store

  init(in folder: URL, of store: Store, _ credentials: CredentialStorage) {
    (file, self.store) = (SecretFile(Self.name, in: folder, of: store, credentials), store)
  }

  /// Returns the code that takes the place of this one: the same again for the same code.
  func next(after code: RecoveryCode) throws -> RecoveryCode {
    if let kept = try read().last(where: { $0.used == code.digest.description })?.code {
      // A file that was altered leads to another code at worst.
      if let next = try? RecoveryCode(typed: kept) { return next }
    }
    let next = Self.make()
    try add(Entry(used: code.digest.description, digest: next.digest.description, code: next.text))
    return next
  }

  /// Returns a new code, which may be in force from now on.
  func new() throws -> RecoveryCode {
    let code = Self.make()
    try add(Entry(digest: code.digest.description))
    return code
  }

  /// Records that the game has got a code.
  func handOver(_ code: RecoveryCode) throws {
    try write(
      read().map { entry in
        var entry = entry
        if entry.digest == code.digest.description { entry.isKnown = true }
        return entry
      })
  }

  /// Forgets what was to take the place of a code that the server doesn't know.
  func forget(_ code: RecoveryCode) throws { try write(read().filter { $0.used != code.digest.description }) }

  /// Whether this device has made the code with this digest, and the game never got it.
  func isUnknown(_ digest: ContentHash) throws -> Bool {
    try read().contains { $0.digest == digest.description && !$0.isKnown }
  }

  private static func make() -> RecoveryCode {
    var source = SystemRandomNumberGenerator()
    return RecoveryCode(using: &source)
  }

  private func add(_ entry: Entry) throws {
    var entries = try read() + [entry]
    // Those of attempts to come back go last.
    while entries.count > Self.maximumEntries { entries.remove(at: entries.firstIndex { $0.code == nil } ?? 0) }
    try write(entries)
  }

  private func read() throws -> [Entry] {
    do {
      guard case .bytes(let bytes, _) = try file.read() else { return [] }
      return try decode(bytes)
    } catch  where Self.isDamage(error) {
      try store.setAside(
        Self.name,
        because: "if the recovery code that is in force isn't written down, make a new one (cloud.makeRecoveryCode)")
      return []
    }
  }

  private func decode(_ bytes: Data) throws -> [Entry] {
    let decoder = JSONDecoder()
    // Before it had a format, the list was all that it had.
    if let codes = try? decoder.decode([Entry].self, from: bytes) { return codes }
    let format = try decoder.decode(Header.self, from: bytes).format ?? Self.format
    guard format <= Self.format else {
      throw StoreError(
        .newerFormat,
        """
        the file \(file.url.path) has format \(format), but this program knows formats up to \(Self.format): update \
        the game
        """)
    }
    return try decoder.decode(Contents.self, from: bytes).codes
  }

  /// Whether the bytes of the file are at fault, and not the disk.
  private static func isDamage(_ error: any Error) -> Bool {
    error is DecodingError || (error as? StoreError)?.code == .tooLarge
  }

  /// Moves the codes into the credential store, if they belong there.
  func move() throws {
    do {
      // What is damaged is set aside first.
      _ = try read()
    } catch let error as StoreError where error.code == .newerFormat {
      // Its secrets belong there in any format.
    }
    try file.move()
  }

  private func write(_ entries: [Entry]) throws { try file.write(JSONEncoder().encode(Contents(codes: entries))) }
}
