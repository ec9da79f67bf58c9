import Foundation
package import Keepsake
package import KeepsakeReplication
package import KeepsakeSync
import Synchronization

/// A cloud in this process: the real acceptance code over memory, and a network that a test can cut.
package final class MemoryCloud: Transport {
  private struct State {
    var container = MemoryContainer(epoch: 1)
    var random = SystemRandomNumberGenerator()
    var listeners: [UUID: AsyncThrowingStream<CloudEvent, any Error>.Continuation] = [:]
    var isCut = false
    var isFull = false
    var quota: Int64?
    var authoritative: Set<String> = []
    var access = ContainerAccess.readWrite
    /// How often the bank was told that the cloud was restored.
    var restores: UInt64 = 0
    var exchanges = 0
    /// The devices that have contacted it, with the first and the last time. Requests without a device aren't recorded.
    var devices: [DeviceID: (name: String, created: Int64, lastSeen: Int64)] = [:]
  }
  /// All memory clouds are of one cloud, whose banks accept each other's vouchers.
  private static let bankKey = Data("keepsake memory cloud".utf8)
  private let state = Mutex(State())
  private let now: @Sendable () -> Int64
  package let name = UUID().uuidString
  package let id: ContainerID

  package init(
    id: ContainerID = ContainerID(high: 7, low: 7), now: @escaping @Sendable () -> Int64 = { 10_000_000_000 }
  ) {
    self.id = id
    self.now = now
  }

  package var address: CloudAddress { .transport(self, container: id, name: name) }

  /// Whether the network is cut, so that no request reaches the cloud.
  package var isCut: Bool {
    get { state.withLock { $0.isCut } }
    set {
      state.withLock { $0.isCut = newValue }
      if newValue { dropListeners("the network was cut") }
    }
  }

  /// Whether the cloud is full: it accepts no saves and no values, but still sends what is new.
  package var isFull: Bool {
    get { state.withLock { $0.isFull } }
    set { state.withLock { $0.isFull = newValue } }
  }

  /// How many bytes the player may store; nil for no limit.
  package var quota: Int64? {
    get { state.withLock { $0.quota } }
    set { state.withLock { $0.quota = newValue } }
  }

  /// Currencies that no device earns.
  package var authoritative: Set<String> {
    get { state.withLock { $0.authoritative } }
    set { state.withLock { $0.authoritative = newValue } }
  }

  /// What devices may do in it.
  package var access: ContainerAccess {
    get { state.withLock { $0.access } }
    set { state.withLock { $0.access = newValue } }
  }

  package var exchanges: Int { state.withLock { $0.exchanges } }

  /// Everything in the cloud: reading it makes a backup, setting it restores one, as after a server's disk was
  /// replaced.
  package var container: MemoryContainer {
    get { state.withLock { $0.container } }
    set {
      state.withLock { $0.container = newValue }
      dropListeners("the cloud was restored")
    }
  }

  /// Restores a backup, and tells the bank, as a server does that finds an older database.
  package func restore(_ backup: MemoryContainer) {
    state.withLock { $0.restores += 1 }
    container = backup
  }

  private func dropListeners(_ reason: String) {
    let listeners = state.withLock { state in
      defer { state.listeners = [:] }
      return Array(state.listeners.values)
    }
    for listener in listeners { listener.finish(throwing: TransportFailure(.interrupted, reason)) }
  }

  private func rules(_ state: State) -> BankRules {
    BankRules(
      authoritative: state.authoritative, seal: BankSeal(bank: id, keys: [Self.bankKey]), epoch: state.restores)
  }

  // MARK: At once, without a network

  package func answer(
    _ request: ExchangeRequest, from device: (id: DeviceID, name: String)? = nil
  ) throws(TransportFailure) -> ExchangeResponse {
    let result: Result<(ExchangeResponse, UInt64?), TransportFailure> = state.withLock { state in
      guard !state.isCut else { return .failure(TransportFailure(.unreachable, "the network is cut")) }
      state.exchanges += 1
      do {
        var next = state.container
        let before = next.position().seq
        var taken = request
        let refusals = state.isFull ? Self.refusals(of: request) : []
        if !refusals.isEmpty { (taken.cells, taken.versions, taken.contents, taken.part) = ([], [], [], nil) }
        var response = try CloudAcceptance.exchange(
          taken, from: device?.id, now: now(), quota: state.quota, rules: rules(state),
          access: state.access, in: &next, using: &state.random)
        if let device { state.devices[device.id] = (device.name, state.devices[device.id]?.created ?? now(), now()) }
        if !refusals.isEmpty, !response.restart { response.outcome = .refused(refusals) }
        state.container = next
        let after = next.position().seq
        return .success((response, after > before ? after : nil))
      } catch {
        return .failure(TransportFailure(.rejected, "\(error)"))
      }
    }
    let (response, seq) = try result.get()
    if let seq {
      let listeners = state.withLock { Array($0.listeners.values) }
      for listener in listeners { listener.yield(CloudEvent(seq: seq)) }
    }
    return response
  }

  /// Handles the offer of a store that has joined another player.
  package func leave(
    with offer: WalletOffer, from device: DeviceID?
  ) throws(TransportFailure) -> LeavingAnswer {
    let result: Result<WalletReply, TransportFailure> = state.withLock { state in
      guard !state.isCut else { return .failure(TransportFailure(.unreachable, "the network is cut")) }
      do {
        var next = state.container
        let reply = try CloudAcceptance.leave(
          with: offer, from: device, now: now(), rules: rules(state), in: &next, using: &state.random)
        state.container = next
        return .success(reply)
      } catch {
        return .failure(TransportFailure(.rejected, "\(error)"))
      }
    }
    return .reply(try result.get())
  }

  package var nowMilliseconds: Int64 { now() }

  /// Performs an order of the bank, as a server with a server key would.
  package func perform(_ order: BankOrder) throws -> Bank.OrderOutcome {
    let (outcome, seq) = try state.withLock { state in
      var next = state.container
      let outcome = try CloudAcceptance.perform(
        order, now: now(), rules: rules(state), in: &next, using: &state.random)
      state.container = next
      return (outcome, next.position().seq)
    }
    if case .done = outcome {
      let listeners = state.withLock { Array($0.listeners.values) }
      for listener in listeners { listener.yield(CloudEvent(seq: seq)) }
    }
    return outcome
  }

  private static func refusals(of request: ExchangeRequest) -> [Refusal] {
    let items = request.versions.map { ExchangeRules.item($0.id) } + request.cells.map { ExchangeRules.item($0.key) }
    return items.map { Refusal(item: $0, reason: .quota, message: "the cloud has no storage left for this player") }
  }

  package func put(_ content: EncodedContent) throws(TransportFailure) {
    var healed: (UInt64, [AsyncThrowingStream<CloudEvent, any Error>.Continuation])?
    let failure = state.withLock { state -> TransportFailure? in
      if state.isCut { return TransportFailure(.unreachable, "the network is cut") }
      if let base = content.base, !state.container.hasContent(base) {
        return TransportFailure(.rejected, "the cloud doesn't have the content \(base), which this delta is based on")
      }
      do {
        let heals = state.container.isSuspect(content.hash)
        if let quota = state.quota, !heals, !state.container.hasContent(content.hash),
          let shortage = try CloudAcceptance.shortage(
            for: Int64(content.bytes.count), quota, now: now(), in: &state.container)
        {
          return TransportFailure(.rejected, "the player's storage in the cloud is full", quota: shortage)
        }
        guard !heals || content.base == nil else {
          return TransportFailure(.rejected, "the content \(content.hash) is damaged in the cloud: upload it in full")
        }
        try CloudAcceptance.put(content, in: &state.container, using: &state.random)
        if heals { healed = (state.container.position().seq, Array(state.listeners.values)) }
        return nil
      } catch {
        return TransportFailure(.rejected, "\(error)")
      }
    }
    if let failure { throw failure }
    if let (seq, listeners) = healed {
      for listener in listeners { listener.yield(CloudEvent(seq: seq)) }
    }
  }

  package func content(_ hash: ContentHash) throws(TransportFailure) -> EncodedContent? {
    let (content, isCut) = state.withLock { ($0.container.content(hash), $0.isCut) }
    if isCut { throw TransportFailure(.unreachable, "the network is cut") }
    return content
  }

  /// Returns the player's devices, with which of these versions each one has, for the device that asks.
  package func devices(having versions: [VersionID], for device: DeviceID) throws(TransportFailure) -> [AccountDevice] {
    let result = state.withLock { state -> Result<[AccountDevice], TransportFailure> in
      guard !state.isCut else { return .failure(TransportFailure(.unreachable, "the network is cut")) }
      return Result {
        let holders = try CloudAcceptance.devices(holding: versions, in: state.container)
        return state.devices.sorted { $0.key < $1.key }.map { id, known in
          AccountDevice(
            device: id, name: known.name, createdMilliseconds: known.created, seenMilliseconds: known.lastSeen,
            isThis: id == device,
            has: holders.filter { $0.value.contains(id) }.keys.sorted())
        }
      }.mapError { TransportFailure(.rejected, "\($0)") }
    }
    return try result.get()
  }

  // MARK: Transport

  package func leave(with offer: WalletOffer) async throws(TransportFailure) -> LeavingAnswer {
    try leave(with: offer, from: nil)
  }

  package func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse {
    try answer(request)
  }

  package func putContent(
    _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) {
    try put(content)
  }

  package func getContent(
    _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) -> EncodedContent? {
    try content(hash)
  }

  package func events(
    since cursor: @escaping @Sendable () async -> Cursor?
  ) -> AsyncThrowingStream<CloudEvent, any Error> {
    let (stream, continuation) = AsyncThrowingStream<CloudEvent, any Error>.makeStream()
    let id = UUID()
    let options = Task { [weak self] in
      let cursor = await cursor()
      guard let self, !Task.isCancelled else { return }
      let first = state.withLock { state -> Result<CloudEvent, any Error> in
        guard !state.isCut else { return .failure(TransportFailure(.unreachable, "the network is cut")) }
        state.listeners[id] = continuation
        return Result {
          // A device between two pages has an exchange in progress, which reports an unknown history.
          let isKnown =
            try cursor.map { try $0.ahead != nil || CloudAcceptance.isOfThisHistory($0, in: state.container) } ?? true
          return CloudEvent(seq: state.container.position().seq, unknown: isKnown ? nil : cursor)
        }
      }
      switch first {
      case .success(let event): continuation.yield(event)
      case .failure(let error): continuation.finish(throwing: error)
      }
    }
    continuation.onTermination = { [weak self] _ in
      options.cancel()
      self?.state.withLock { _ = $0.listeners.removeValue(forKey: id) }
    }
    return stream
  }
}
