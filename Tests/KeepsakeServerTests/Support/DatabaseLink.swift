#if Cloud && PostgreSQL
import Foundation
import TestSupport
import Testing

/// An address at which a database can't be reached until it is connected.
final class DatabaseLink {
  let address: String
  private let temporary: TemporaryFolder
  private let target: String
  private static let socket = ".s.PGSQL.5432"

  init(to address: String) throws {
    // A socket's path is short.
    temporary = try TemporaryFolder.inMemory("link")
    let there = try #require(URLComponents(string: address)?.queryItems?.first { $0.name == "host" }?.value)
    target = "\(there)/\(Self.socket)"
    self.address = address.replacingOccurrences(of: there, with: temporary.url.path)
  }

  var folder: URL { temporary.url }

  func connect() throws {
    try FileManager.default.createSymbolicLink(
      atPath: folder.appendingPathComponent(Self.socket).path, withDestinationPath: target)
  }
}
#endif
