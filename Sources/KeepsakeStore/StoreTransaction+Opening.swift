import GRDB
package import KeepsakeReplication

extension StoreTransaction {
  package func unofferedVersions() throws -> [VersionID] {
    try identifiers("SELECT id FROM version WHERE acknowledged = 0 AND NOT offered ORDER BY id", [])
  }
}
