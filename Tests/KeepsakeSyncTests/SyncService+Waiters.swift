@testable import KeepsakeSync

extension SyncService {
  /// How many calls wait for the service.
  var waiterCount: Int { waiters.count }
}
