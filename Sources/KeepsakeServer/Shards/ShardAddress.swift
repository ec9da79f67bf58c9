#if Cloud
/// A further database of a cloud, as an operator names it: `NAME=postgres://...`.
package struct ShardAddress: Hashable, Sendable {
  /// The name of the database that has the directory.
  package static let home = "home"
  private static let longest = 32

  package var name: String
  package var address: String

  /// - Throws: `ServerError` with `configuration`, which doesn't repeat the address: it may have a password.
  package init(_ text: String) throws {
    guard let separator = text.firstIndex(of: "=") else {
      throw ServerError(.configuration, "A shard is named as NAME=postgres://user@host/name.")
    }
    (name, address) = (String(text[..<separator]), String(text[text.index(after: separator)...]))
    guard Self.isName(name) else {
      throw ServerError(
        .configuration,
        "A shard's name has 1 to \(Self.longest) small letters, digits and hyphens, and begins with a letter.")
    }
    guard name != Self.home else {
      throw ServerError(.configuration, "\"\(Self.home)\" is the shard that --database names: choose another name.")
    }
    guard !address.isEmpty else { throw ServerError(.configuration, "The address of the shard \(name) is empty.") }
  }

  private static func isName(_ text: String) -> Bool {
    guard let first = text.utf8.first, (1...longest).contains(text.utf8.count) else { return false }
    func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte) }
    return isLetter(first) && text.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || $0 == 0x2d }
  }

  /// - Throws: `ServerError` with `configuration` for one that can't be read, or two with one name.
  package static func all(_ texts: [String]) throws -> [ShardAddress] {
    let addresses = try texts.map { try ShardAddress($0) }
    var names: Set<String> = []
    for one in addresses where !names.insert(one.name).inserted {
      throw ServerError(.configuration, "There are two shards with the name \(one.name).")
    }
    return addresses
  }
}
#endif
