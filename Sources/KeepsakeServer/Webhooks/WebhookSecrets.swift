#if Cloud
import Crypto
import Foundation
import KeepsakeReplication

/// The secrets with which events to one endpoint are signed: two while one is being replaced by the other.
struct WebhookSecrets: Sendable {
  /// A secret shorter than 16 characters can be guessed.
  private static let lengths = 16...256
  private static let most = 2
  private static let fileBytes = 4_096

  private let keys: [SymmetricKey]

  /// Reads the lines of a file.
  ///
  /// - Throws: A `ServerError` for a file that isn't there, that others may read, or that has no secret.
  init(_ file: URL, of endpoint: String) throws {
    func mistake(_ what: String) -> ServerError { WebhookEndpoint.mistake(endpoint, "\(file.path) \(what)") }
    guard let bytes = try PrivateFile.read(file) else {
      throw ServerError(.missing, "There is no file \(file.path) with the secrets of the webhook \(endpoint).")
    }
    let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int ?? 0
    guard mode & 0o077 == 0 else { throw mistake("can be read by other users: chmod 600") }
    guard bytes.count <= Self.fileBytes else { throw mistake("has more than two secrets") }
    try self.init(
      String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }, mistake)
  }

  /// - Parameter mistake: Makes the error that says what is wrong.
  init(_ lines: [String], _ mistake: (String) -> ServerError = { WebhookEndpoint.mistake("", $0) }) throws {
    guard (1...Self.most).contains(lines.count) else { throw mistake("has to have one secret or two, each on a line") }
    for line in lines {
      guard Self.lengths.contains(line.utf8.count), line.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
        throw mistake(
          "has a secret without \(Self.lengths.lowerBound) to \(Self.lengths.upperBound) visible ASCII characters")
      }
    }
    keys = lines.map { SymmetricKey(data: Data($0.utf8)) }
  }

  /// The value of `Keepsake-Webhook-Signature`: one signature for each secret.
  func signature(id: String, milliseconds: Int64, body: Data) -> String {
    let signed = Data("\(id).\(milliseconds).".utf8) + body
    return keys.map { key in
      let code = HMAC<SHA256>.authenticationCode(for: signed, using: key)
      return "v1=" + code.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }.joined(separator: ",")
  }
}
#endif
