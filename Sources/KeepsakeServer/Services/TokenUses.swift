#if Cloud
import KeepsakeReplication
import Logging
import Synchronization

/// Which token of a device was used last: an earlier one that expired can't be renewed any more, so that a copy of it,
/// as in an old backup of the device, is worth nothing.
protocol TokenStorage: Sendable {
  /// When the newest token was issued that the device has used, in milliseconds since 1970; nil if it was never
  /// renewed.
  func newestToken(of identity: DeviceIdentity) async throws -> Int64?
  /// Records that the device uses a token that was issued at this time.
  func recordToken(issuedMilliseconds: Int64, of identity: DeviceIdentity) async throws
}

/// Records the use of renewed tokens, once for each token as long as the server runs. Devices that still have their
/// first token cost nothing.
final class TokenUses: Sendable {
  /// Devices whose tokens are remembered as recorded: some 3 MB.
  private static let remembered = 50_000
  private struct Device: Hashable {
    var container: ContainerID
    var device: DeviceID
  }
  private let storage: any TokenStorage
  private let logger: Logger
  private let recorded = Mutex<[Device: Int64]>([:])

  init(_ storage: any TokenStorage, logger: Logger) { (self.storage, self.logger) = (storage, logger) }

  /// Records that a device uses `token`.
  ///
  /// A failure is logged and doesn't fail the device's request: until it succeeds, an earlier token may be renewed.
  func record(_ token: VerifiedToken) async {
    guard token.renewals > 0 else { return }
    let device = Device(container: token.identity.container, device: token.identity.device)
    if let known = recorded.withLock({ $0[device] }), known >= token.issuedMilliseconds { return }
    do {
      let stored = try await storage.newestToken(of: token.identity) ?? .min
      if stored < token.issuedMilliseconds {
        try await storage.recordToken(issuedMilliseconds: token.issuedMilliseconds, of: token.identity)
      }
      recorded.withLock { recorded in
        if recorded.count >= Self.remembered { recorded.removeAll() }
        recorded[device] = max(stored, token.issuedMilliseconds)
      }
    } catch {
      logger.failure("The use of a renewed token can't be recorded", error)
    }
  }

  /// Returns whether the device has used a token that was issued later than `token`.
  func isSuperseded(_ token: VerifiedToken) async throws -> Bool {
    try await storage.newestToken(of: token.identity).map { $0 > token.issuedMilliseconds } ?? false
  }
}
#endif
