#if Cloud
import GRDB

extension SQLiteCloudStorage {
  /// Makes a transaction that changes nothing, where each change waits, too: returns when its turn has come.
  func probe() async throws { _ = try await pool.write { try Int.fetchOne($0, sql: "SELECT 1") } }
}
#endif
