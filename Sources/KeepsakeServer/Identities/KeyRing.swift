#if Cloud
import Foundation
import Logging

/// The keys at an issuer's address, kept for some time.
///
/// The address is asked when keys are older than an hour or a token names a key that isn't among them, and at most once
/// a minute whatever tokens come. While it can't be reached, the keys that it had last stay in use, for a day.
actor KeyRing {
  /// How long keys are used without asking: a key that an issuer withdraws is accepted for this long.
  static let freshMilliseconds: Int64 = 3_600_000
  static let pauseMilliseconds: Int64 = 60_000
  /// For how long keys are used while the address can't be reached.
  static let staleMilliseconds: Int64 = 86_400_000

  private let issuer: String
  private let address: URL
  private let algorithm: TokenAlgorithm
  private let source: any KeySource
  private let clock: @Sendable () -> Int64
  private let logger: Logger
  private let limit: Duration
  private var known: (keys: KeySet, at: Int64)?
  private var asked: Int64?
  /// The request that is being made, for which all wait who need it.
  private var asking: Task<Void, Never>?

  init(
    issuer: String, address: URL, algorithm: TokenAlgorithm, source: any KeySource,
    limit: Duration = .seconds(ServerLimits.identitySeconds), clock: @escaping @Sendable () -> Int64, _ logger: Logger
  ) {
    self.issuer = issuer
    self.address = address
    self.algorithm = algorithm
    self.source = source
    self.limit = limit
    self.clock = clock
    self.logger = logger
  }

  /// Returns a key by its name; nil if the issuer has no such key.
  ///
  /// - Throws: `IdentityFailure` with `unavailable` if no keys are known, or those known are too old.
  func key(named id: String?) async throws -> VerificationKey? {
    if let key = usable(within: Self.freshMilliseconds)?.key(named: id) { return key }
    await ask()
    guard let keys = usable(within: Self.staleMilliseconds) else {
      throw IdentityFailure.unavailable("the issuer's keys can't be had at present")
    }
    return keys.key(named: id)
  }

  /// Keys of up to this age. Those from the future, by a clock that was set back, count as old as can be.
  private func usable(within age: Int64) -> KeySet? {
    guard let known, case let elapsed = clock() &- known.at, (0..<age).contains(elapsed) else { return nil }
    return known.keys
  }

  /// Asks the address, unless it was asked within the last minute; joins a request that is being made.
  private func ask() async {
    if let asking { return await asking.value }
    let now = clock()
    if let asked, (0..<Self.pauseMilliseconds).contains(now &- asked) { return }
    asked = now
    let task = Task { await self.fetch(at: now) }
    asking = task
    await task.value
  }

  private func fetch(at now: Int64) async {
    defer { asking = nil }
    let (source, address) = (source, address)
    do {
      let bytes = try await Deadline.run(within: limit) {
        try await source.keys(at: address, limit: KeySet.maximumBytes)
      }
      known = (try KeySet(bytes, for: algorithm), now)
    } catch {
      var logger = logger
      logger[metadataKey: "issuer"] = "\(issuer)"
      logger.failure("The keys of an identity issuer can't be had; those from before stay in use for a day", error)
    }
  }
}
#endif
