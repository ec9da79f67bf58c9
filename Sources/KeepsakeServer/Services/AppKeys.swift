#if Cloud
import Crypto
import Foundation
import Logging

/// Identifies an app by a hash of its key, which doesn't reveal the key.
struct AppID: Hashable, Sendable {
  static let byteCount = 8
  let bytes: Data

  init(ofKey key: String) { bytes = Data(SHA256.hash(data: Data(key.utf8)).prefix(Self.byteCount)) }

  init(bytes: Data) { self.bytes = bytes }
}

/// The keys with which installs may register. A key that isn't among them any more is revoked, and with it the tokens
/// of the devices that registered with it.
///
/// Those in a file, one on each line, may change while the server runs; a line that begins with `#` is a comment.
struct AppKeys: Sendable {
  private struct Accepted: Sendable {
    var keys: [String]
    var digests: [SHA256.Digest]
    var apps: Set<AppID>
  }
  private let accepted: WatchedFiles<Accepted>

  /// - Parameters:
  ///   - keys: Those that stay as long as the server runs.
  ///   - file: Where further keys are; nil for none.
  /// - Throws: A `ServerError` if a key isn't acceptable, there is none, or the file can't be read.
  init(_ keys: [String], file: URL? = nil, logger: Logger = Logger(label: "keepsake.server")) throws {
    accepted = try WatchedFiles(file.map { [$0] } ?? [], what: "app keys", logger: logger) {
      let all = try keys + (file.map(Self.read) ?? [])
      guard all.allSatisfy(Self.isAcceptable) else {
        throw ServerError(
          .configuration,
          "An app key must have 8 to 200 visible ASCII characters and no spaces; one of those given doesn't.")
      }
      guard !all.isEmpty else {
        throw ServerError(.configuration, "\(file?.path ?? "The configuration") has no app key.")
      }
      return Accepted(
        keys: all, digests: all.map { SHA256.hash(data: Data($0.utf8)) }, apps: Set(all.map(AppID.init)))
    }
  }

  private static func read(_ file: URL) throws -> [String] {
    guard let bytes = try PrivateFile.read(file) else {
      throw ServerError(.missing, "There is no file \(file.path) with app keys.")
    }
    return String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
      .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty && !$0.hasPrefix("#") }
  }

  static func isAcceptable(_ key: String) -> Bool {
    (8...200).contains(key.utf8.count) && key.utf8.allSatisfy { (0x21...0x7E).contains($0) }
  }

  /// The keys themselves.
  var keys: [String] { accepted.value.keys }

  /// Reads the file again, whether it looks changed or not.
  func reload() { accepted.reload() }

  /// Returns the app of a known key. Takes the same time for every wrong key, however wrong.
  func app(forKey key: String) -> AppID? {
    let offered = SHA256.hash(data: Data(key.utf8))
    var found = false
    // Comparing digests takes the same time wherever they differ, and all of them are compared.
    for digest in accepted.value.digests where digest == offered { found = true }
    return found ? AppID(ofKey: key) : nil
  }

  /// Returns whether an app's key is still among them.
  func accepts(_ app: AppID) -> Bool { accepted.value.apps.contains(app) }
}
#endif
