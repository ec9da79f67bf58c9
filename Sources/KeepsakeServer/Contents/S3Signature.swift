#if Cloud
import Crypto
import Foundation

/// A request to S3, and its signature (AWS Signature Version 4, "Signature Calculations for the Authorization Header:
/// Transferring Payload in a Single Chunk" in the Amazon S3 API Reference).
struct S3Request: Sendable {
  var method: String
  var host: String
  /// Not encoded.
  var path: String
  var query: [(name: String, value: String)] = []
  /// Those that are signed, besides the host, the date, the payload's hash and the session's token.
  var headers: [(name: String, value: String)] = []
  /// The SHA-256 of the body, in hexadecimal digits.
  var payloadHash = Self.emptyHash

  static let emptyHash = hexadecimal(SHA256.hash(data: Data()))

  static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }.joined()
  }

  /// The path and the query, encoded as they are signed and sent.
  var target: String {
    let query = canonicalQuery
    return Self.encoded(path, sparing: "/") + (query.isEmpty ? "" : "?\(query)")
  }

  /// Returns the headers with which it is sent, the host among them.
  func signed(with credentials: S3Credentials, region: String, at date: Date) -> [(name: String, value: String)] {
    let time = Self.time(date)
    var all = headers + [("host", host), ("x-amz-content-sha256", payloadHash), ("x-amz-date", time)]
    if let token = credentials.sessionToken { all.append(("x-amz-security-token", token)) }
    let sorted = all.map { (name: $0.name.lowercased(), value: $0.value) }.sorted { $0.name < $1.name }
    let names = sorted.map(\.name).joined(separator: ";")
    let lines = sorted.map { "\($0.name):\($0.value.trimmingCharacters(in: .whitespaces))\n" }.joined()
    let canonical = [
      method, Self.encoded(path, sparing: "/"), canonicalQuery, lines, names, payloadHash,
    ].joined(separator: "\n")
    let day = String(time.prefix(8))
    let scope = "\(day)/\(region)/s3/aws4_request"
    let text = "AWS4-HMAC-SHA256\n\(time)\n\(scope)\n\(Self.hexadecimal(SHA256.hash(data: Data(canonical.utf8))))"
    var key = SymmetricKey(data: Data("AWS4\(credentials.secretKey)".utf8))
    for word in [day, region, "s3", "aws4_request"] {
      key = SymmetricKey(data: HMAC<SHA256>.authenticationCode(for: Data(word.utf8), using: key))
    }
    let signature = Self.hexadecimal(HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: key))
    let authorization =
      "AWS4-HMAC-SHA256 Credential=\(credentials.accessKey)/\(scope),SignedHeaders=\(names),Signature=\(signature)"
    return sorted + [("authorization", authorization)]
  }

  private var canonicalQuery: String {
    query.map { (Self.encoded($0.name), Self.encoded($0.value)) }.sorted { $0 < $1 }.map { "\($0)=\($1)" }
      .joined(separator: "&")
  }

  /// Encodes all bytes but letters, digits and `-._~`.
  static func encoded(_ text: String, sparing others: String = "") -> String {
    var result = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        result.unicodeScalars.append(Unicode.Scalar(byte))
      case _ where others.utf8.contains(byte): result.unicodeScalars.append(Unicode.Scalar(byte))
      default: result += "%" + hexadecimal([byte]).uppercased()
      }
    }
    return result
  }

  /// Such as `20130524T000000Z`.
  private static func time(_ date: Date) -> String {
    date.formatted(
      Date.ISO8601FormatStyle(dateSeparator: .omitted, dateTimeSeparator: .standard, timeSeparator: .omitted))
  }
}
#endif
