#if Cloud
import Crypto
package import Foundation
import KeepsakeReplication

/// The keys with which the game's own servers may order the bank: a file in the data folder, readable by the owner
/// only, with a name and the SHA-256 of a key on each line.
///
///     shop 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
///
/// The keys themselves are kept nowhere. The file may change while a server runs.
package struct ServerKeys: Sendable {
  private static let keyLength = 28
  private static let maximumNameBytes = 64
  /// More than any studio has servers. Each request compares with all.
  private static let maximumKeys = 100

  private struct Entry {
    var name: String
    var digest: ContentHash
  }

  private let file: URL

  /// - Parameter data: The data folder of a server, which must exist.
  package init(data: URL) throws {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: data.path, isDirectory: &isFolder), isFolder.boolValue else {
      throw ServerError(.missing, "There is no data folder at \(data.path): run `keepsake serve` once.")
    }
    file = data.appendingPathComponent("server-keys")
  }

  /// The names of all keys, sorted.
  package func names() throws -> [String] { try entries().map(\.name).sorted() }

  /// Creates a key.
  ///
  /// - Parameter name: The name under which it is listed and removed: 1 to 64 visible ASCII characters.
  /// - Returns: The key, which nobody can read again.
  /// - Throws: A `ServerError` for a name that isn't allowed or that a key has, or if the file can't be written.
  package func create(_ name: String) throws -> String {
    guard (1...Self.maximumNameBytes).contains(name.utf8.count), name.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else {
      throw ServerError(
        .configuration,
        "A server key's name must have 1 to \(Self.maximumNameBytes) visible ASCII characters and no spaces.")
    }
    var source = SystemRandomNumberGenerator()
    let key = "srv_" + ReadableCode.make(length: Self.keyLength, using: &source).lowercased()
    try change { entries in
      guard !entries.contains(where: { $0.name == name }) else {
        throw ServerError(
          .configuration, "There is a server key named \(name) already: remove it, or use another name.")
      }
      guard entries.count < Self.maximumKeys else {
        throw ServerError(.configuration, "There are \(Self.maximumKeys) server keys already: remove one first.")
      }
      entries.append(Entry(name: name, digest: ContentHash(of: Data(key.utf8))))
    }
    return key
  }

  /// Removes a key: a running server refuses it from its next request on.
  ///
  /// - Throws: A `ServerError` if there is none of that name, or if the file can't be written.
  package func remove(_ name: String) throws {
    try change { entries in
      guard let index = entries.firstIndex(where: { $0.name == name }) else {
        throw ServerError(.missing, "There is no server key named \(name.prefix(Self.maximumNameBytes)).")
      }
      entries.remove(at: index)
    }
  }

  /// Returns whether one of the keys is this one. Takes the same time for every wrong key, however wrong. Reads the
  /// file.
  func accepts(_ key: String) throws -> Bool {
    let offered = SHA256.hash(data: Data(key.utf8))
    var isFound = false
    // Comparing with a digest takes the same time wherever they differ, and all of them are compared.
    for entry in try entries() where offered == entry.digest.bytes { isFound = true }
    return isFound
  }

  // MARK: The file

  private func entries() throws -> [Entry] {
    guard let bytes = try PrivateFile.read(file) else { return [] }
    return try String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).map { line in
      let words = line.split(separator: " ")
      guard words.count == 2, let digest = ContentHash(words[1]) else {
        throw ServerError(
          .damaged, "\(file.path) can't be read: restore it from a backup, or remove it and create new server keys.")
      }
      return Entry(name: String(words[0]), digest: digest)
    }
  }

  /// Changes the file, while no other command does.
  private func change(_ body: (inout [Entry]) throws -> Void) throws {
    try PrivateFile.locking(file) {
      var entries = try entries()
      try body(&entries)
      let lines = entries.map { "\($0.name) \($0.digest)\n" }
      try PrivateFile.write(Data(lines.joined().utf8), to: file)
    }
  }
}
#endif
