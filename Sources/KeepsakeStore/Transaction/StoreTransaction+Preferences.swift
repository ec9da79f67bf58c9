package import Foundation
import GRDB

/// A preference's undecoded row: checked only when its value is requested, because a game requests few of many when it
/// starts.
package struct KeptPreference: Sendable {
  package let name: String
  private let body: Data
  private let seal: StoreSeal

  init(name: String, body: Data, seal: StoreSeal) {
    self.name = name
    self.body = body
    self.seal = seal
  }

  /// Approximately the value's size in bytes, without decoding it.
  package var size: Int { body.count }

  /// Returns the value's bytes as they were given. Costs a hash over them, and whatever the seal costs.
  ///
  /// - Throws: `StoreError`: `damaged` if they aren't what was written, `tampered` if they were written without the
  ///   secret.
  package func bytes() throws -> Data {
    let place = RowIdentity.preference(name)
    return try Data(seal.open(RowCodec.payload(of: body, place: place), place: place))
  }
}

/// Preferences of this device alone: names, and values as bytes that the game encoded.
extension StoreTransaction {
  /// Returns all preferences, in the order of their names' bytes, and the number of unusable rows. Costs a pass over
  /// the rows, and no hash.
  package func preferences() throws -> (kept: [KeptPreference], unreadable: Int) {
    let rows = try Row.fetchCursor(statement("SELECT name, body FROM preference ORDER BY name"))
    var kept: [KeptPreference] = []
    var unreadable = 0
    while let row = try rows.next() {
      do {
        kept.append(
          KeptPreference(name: try row.checked(at: 0, "name"), body: try row.checked(at: 1, "body"), seal: context.seal)
        )
      } catch let error as StoreError where error.code == .damaged {
        unreadable += 1
      }
    }
    return (kept, unreadable)
  }

  /// Stores `bytes` under the name, replacing what was there.
  package mutating func setPreference(_ bytes: Data, named name: String) throws {
    let body = try codec.body(of: bytes, place: RowIdentity.preference(name))
    try run("INSERT OR REPLACE INTO preference (name, body) VALUES (?, ?)", [name, body])
  }

  package mutating func removePreference(named name: String) throws {
    try run("DELETE FROM preference WHERE name = ?", [name])
  }
}
