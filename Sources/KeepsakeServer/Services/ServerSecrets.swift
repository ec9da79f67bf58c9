#if Cloud
package import Foundation

/// The secrets of a cloud, the newest first: a file in the data folder, readable by the owner only.
///
///     keepsake-secrets 1
///     1764147600000 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
///
/// Each line has the time at which a secret was made, in milliseconds since 1970, and its 32 bytes in hexadecimal
/// digits. The file of an earlier release is the 32 bytes alone; it is rewritten at the first start.
///
/// The newest one signs. Tokens under the newest two are valid; under older ones they are good for renewal only, until
/// these are forgotten. The file is replaced as a whole, so that a crash leaves the old one or the new one, and a
/// running server notices it.
package struct ServerSecrets: Sendable {
  struct Secret: Hashable, Sendable {
    var createdMilliseconds: Int64
    var bytes: Data
  }
  /// How many of the newest secrets sign valid tokens.
  package static let valid = 2
  /// How many are kept: with one rotation a year, a device is recognized after seven years.
  static let kept = 8
  private static let heading = "keepsake-secrets 1"
  private static let byteCount = 32

  let file: URL

  /// - Parameter data: The data folder of a server, which must exist.
  package init(data: URL) throws {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: data.path, isDirectory: &isFolder), isFolder.boolValue else {
      throw ServerError(.missing, "There is no data folder at \(data.path): run `keepsake serve` once.")
    }
    file = data.appendingPathComponent("secret")
  }

  /// When each secret was made, in milliseconds since 1970, the newest first. Empty before the first start.
  package func ages() throws -> [Int64] { try read().map(\.createdMilliseconds) }

  /// Makes a new secret, which signs from now on. Tokens under the one before stay valid, and are renewed when their
  /// devices use them. The oldest one beyond the number that is kept is dropped.
  ///
  /// - Parameter now: In milliseconds since 1970.
  /// - Returns: How many secrets there are.
  /// - Throws: A `ServerError` if there is no secret yet, or the file can't be read or written.
  package func rotate(now: Int64) throws -> Int {
    try change { secrets in
      guard !secrets.isEmpty else {
        throw ServerError(.missing, "There is no secret at \(file.path): run `keepsake serve` once.")
      }
      secrets = Array(([Self.make(now: now)] + secrets).prefix(Self.kept))
    }
  }

  /// Forgets all secrets except the newest one, for example because an earlier one became known. Tokens, statements
  /// and vouchers under them are refused from now on.
  ///
  /// - Returns: How many were forgotten.
  /// - Throws: A `ServerError` if the file can't be read or written.
  package func forgetEarlier() throws -> Int {
    var count = 0
    _ = try change { secrets in
      count = max(0, secrets.count - 1)
      secrets = Array(secrets.prefix(1))
    }
    return count
  }

  /// Returns all secrets, and makes the first one if there is none. Gives a secret of an earlier release the time
  /// `now`: tokens of that release have no age, and count from then on.
  func prepare(now: Int64) throws -> [Secret] {
    try PrivateFile.locking(file) {
      if let bytes = try PrivateFile.read(file), bytes.count != Self.byteCount { return try parse(bytes) }
      let secrets = try read(now: now)
      let prepared = secrets.isEmpty ? [Self.make(now: now)] : secrets
      try write(prepared)
      return prepared
    }
  }

  func read(now: Int64 = 0) throws -> [Secret] {
    guard let bytes = try PrivateFile.read(file) else { return [] }
    return bytes.count == Self.byteCount ? [Secret(createdMilliseconds: now, bytes: bytes)] : try parse(bytes)
  }

  private static func make(now: Int64) -> Secret {
    var source = SystemRandomNumberGenerator()
    var bytes = Data()
    for _ in 0..<(byteCount / 8) {
      withUnsafeBytes(of: source.next() as UInt64) { bytes.append(contentsOf: $0) }
    }
    return Secret(createdMilliseconds: now, bytes: bytes)
  }

  private func parse(_ bytes: Data) throws -> [Secret] {
    let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
    let secrets = lines.dropFirst().compactMap { line -> Secret? in
      let words = line.split(separator: " ")
      guard words.count == 2, let created = Int64(words[0]), let bytes = Self.bytes(words[1]) else { return nil }
      return Secret(createdMilliseconds: created, bytes: bytes)
    }
    guard lines.first == Self.heading[...], !secrets.isEmpty, secrets.count == lines.count - 1 else {
      throw ServerError(
        .damaged,
        """
        \(file.path) isn't a list of secrets: restore it from a backup, or remove it and let every device join its \
        player again.
        """)
    }
    return secrets
  }

  private static func bytes(_ digits: Substring) -> Data? {
    guard digits.utf8.count == 2 * byteCount, digits.allSatisfy(\.isHexDigit) else { return nil }
    var bytes = Data()
    var rest = digits
    while !rest.isEmpty {
      guard let byte = UInt8(rest.prefix(2), radix: 16) else { return nil }
      bytes.append(byte)
      rest = rest.dropFirst(2)
    }
    return bytes
  }

  private func write(_ secrets: [Secret]) throws {
    let lines = secrets.map { secret in
      let digits = secret.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
      return "\(secret.createdMilliseconds) \(digits)\n"
    }
    try PrivateFile.write(Data((Self.heading + "\n" + lines.joined()).utf8), to: file)
  }

  /// Changes the file, while no other command does. Returns how many secrets there are then.
  private func change(_ body: (inout [Secret]) throws -> Void) throws -> Int {
    try PrivateFile.locking(file) {
      var secrets = try read()
      try body(&secrets)
      if !secrets.isEmpty { try write(secrets) }
      return secrets.count
    }
  }
}
#endif
