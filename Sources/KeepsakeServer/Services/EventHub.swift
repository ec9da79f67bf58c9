#if Cloud
import HTTPTypes
import KeepsakeReplication
import NIOCore
import ServiceLifecycle
import Synchronization

/// What is told of a container's changes, one after the other.
protocol EventListener: Sendable {
  /// Takes a notice, without waiting for anything.
  func receive(_ notice: EventHub.Notice)
  /// Nothing more comes.
  func end()
}

extension AsyncStream<EventHub.Notice>.Continuation: EventListener {
  func receive(_ notice: EventHub.Notice) { yield(notice) }
  func end() { finish() }
}

/// Notifies the open event streams of a container of how far it has come, and of what changed.
final class EventHub: Service, Sendable {
  /// What one stream receives: the newest known seq, and the event as JSON if it contains more than that.
  struct Notice: Sendable {
    var seq: UInt64
    fileprivate var payload: Payload?

    fileprivate init(seq: UInt64, payload: Payload? = nil) { (self.seq, self.payload) = (seq, payload) }

    var event: ByteBuffer? { payload?.json }
  }
  /// An event that waits for those who read it, in memory until the last of them has it.
  fileprivate final class Payload: Sendable {
    let json: ByteBuffer
    private let share: Allotment.Share

    init(_ json: ByteBuffer, _ share: Allotment.Share) { (self.json, self.share) = (json, share) }
  }
  /// What a task reads. A heartbeat repeats the newest notice, without its event. Of the notices that haven't been
  /// read, only the newest few are kept, so that a slow listener costs little; what it misses, it fetches with an
  /// exchange.
  struct Subscription: Sendable {
    let id: UInt64
    fileprivate let container: ContainerID
    let notices: AsyncStream<Notice>
  }
  /// A listener without a task. It is told of changes until `end()`, or until this is gone.
  final class Listening: Sendable {
    private let hub: EventHub
    private let id: UInt64
    private let container: ContainerID

    fileprivate init(_ id: UInt64, of container: ContainerID, _ hub: EventHub) {
      (self.hub, self.id, self.container) = (hub, id, container)
      hub.state.withLock { $0.listening += 1 }
    }

    /// Leaves its place to another listener.
    func end() { hub.remove(id, of: container) }

    deinit {
      end()
      hub.state.withLock { $0.listening -= 1 }
      hub.gone.continuation.yield()
    }
  }
  private struct Open {
    var device: DeviceID
    var newest: UInt64
    var listener: any EventListener
  }
  private struct State {
    var nextID: UInt64 = 0
    var listeners: [ContainerID: [UInt64: Open]] = [:]
    /// Listeners without a task that still exist, ended or not.
    var listening = 0
    var isClosed = false
  }
  private let state = Mutex(State())
  /// Gets an element when a `Listening` is gone.
  private let gone = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  private let waitingEvents: Allotment
  private let heartbeatSeconds: Int
  /// Tells the other servers.
  private let relay = Mutex<(@Sendable (Relayed) -> Void)?>(nil)

  /// What streams of other servers have to know.
  enum Relayed: Hashable, Sendable {
    /// A container has come this far.
    case moved(ContainerID, UInt64)
    /// The streams of a device end, or all of a container.
    case ended(ContainerID, DeviceID?)
  }

  /// - Parameter waitingBytes: Bytes of events that wait for listeners. Beyond that, listeners only learn that there is
  ///   something new.
  init(
    waitingBytes: Int = ServerLimits.waitingEventBytes, heartbeatSeconds: Int = ServerLimits.heartbeatSeconds
  ) {
    waitingEvents = Allotment(waitingBytes)
    self.heartbeatSeconds = heartbeatSeconds
  }

  /// Opens a stream. Throws if the server is stopping, or the container has too many streams already.
  func subscribe(_ device: DeviceID, to container: ContainerID) throws -> Subscription {
    let (stream, continuation) = AsyncStream<Notice>.makeStream(
      bufferingPolicy: .bufferingNewest(ServerLimits.noticesPerStream))
    let id = try add(continuation, device, of: container)
    continuation.onTermination = { [weak self] _ in self?.remove(id, of: container) }
    return Subscription(id: id, container: container, notices: stream)
  }

  /// Opens a stream of which `listener` is told. Throws as `subscribe` does.
  func listen(_ device: DeviceID, to container: ContainerID, _ listener: any EventListener) throws -> Listening {
    Listening(try add(listener, device, of: container), of: container, self)
  }

  private func add(_ listener: any EventListener, _ device: DeviceID, of container: ContainerID) throws -> UInt64 {
    try state.withLock { state in
      guard !state.isClosed else {
        throw APIError(.serviceUnavailable, .busy, "The server is stopping.", retryAfterSeconds: 2)
      }
      guard state.listeners[container, default: [:]].count < ServerLimits.streamsPerContainer else {
        throw APIError(
          .tooManyRequests, .tooManyStreams, "This player has too many event streams open.", retryAfterSeconds: 60)
      }
      state.nextID += 1
      state.listeners[container, default: [:]][state.nextID] = Open(
        device: device, newest: 0, listener: listener)
      return state.nextID
    }
  }

  func unsubscribe(_ subscription: Subscription) { remove(subscription.id, of: subscription.container) }

  /// Has `body` called with what streams of other servers have to know.
  func relay(_ body: @escaping @Sendable (Relayed) -> Void) { relay.withLock { $0 = body } }

  /// Takes what another server has relayed.
  func receive(_ relayed: Relayed) {
    switch relayed {
    case .moved(let container, let seq): publishHere(seq, nil, of: container, from: nil)
    case .ended(let container, let device): endHere(device, of: container)
    }
  }

  /// The containers to which streams listen, with the devices of these.
  var listened: [(container: ContainerID, devices: Set<DeviceID>)] {
    state.withLock { $0.listeners.map { ($0.key, Set($0.value.values.map(\.device))) } }
  }

  /// Ends the streams of a removed device, or all streams if `device` is nil.
  func end(_ device: DeviceID?, of container: ContainerID) {
    endHere(device, of: container)
    relay.withLock(\.self)?(.ended(container, device))
  }

  private func endHere(_ device: DeviceID?, of container: ContainerID) {
    let ended = state.withLock { state in
      let ended = (state.listeners[container] ?? [:]).filter { device == nil || $0.value.device == device }
      for id in ended.keys { state.listeners[container]?[id] = nil }
      if state.listeners[container]?.isEmpty == true { state.listeners[container] = nil }
      return ended.values
    }
    for ended in ended { ended.listener.end() }
  }

  /// Whether a device other than `device` listens.
  func hasListeners(in container: ContainerID, besides device: DeviceID) -> Bool {
    state.withLock { $0.listeners[container]?.values.contains { $0.device != device } == true }
  }

  /// Notifies the listeners; call it after the commit. The device that sent the exchange already has the response, so
  /// it gets only the seq.
  ///
  /// - Parameter device: Nil if no device has caused it.
  func publish(_ seq: UInt64, _ event: ByteBuffer?, of container: ContainerID, from device: DeviceID?) {
    publishHere(seq, event, of: container, from: device)
    relay.withLock(\.self)?(.moved(container, seq))
  }

  private func publishHere(_ seq: UInt64, _ event: ByteBuffer?, of container: ContainerID, from device: DeviceID?) {
    let payload = event.flatMap { event in
      waitingEvents.share(event.readableBytes).map { Payload(event, $0) }
    }
    state.withLock { state in
      for id in state.listeners[container, default: [:]].keys {
        guard var open = state.listeners[container]?[id], seq > open.newest else { continue }
        open.newest = seq
        state.listeners[container]?[id] = open
        open.listener.receive(Notice(seq: seq, payload: open.device != device ? payload : nil))
      }
    }
  }

  /// The number of open streams.
  var count: Int { state.withLock { $0.listeners.values.reduce(0) { $0 + $1.count } } }

  /// Sends heartbeats until the server stops; then waits until the connections of all streams are closed, or the time
  /// to stop is over.
  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do {
          try await Task.sleep(for: .seconds(self.heartbeatSeconds))
        } catch {
          break
        }
        self.beat()
      }
    }
    close()
    var gone = gone.stream.makeAsyncIterator()
    while state.withLock({ $0.listening > 0 }), await gone.next() != nil {}
  }

  private func beat() {
    state.withLock { state in
      for listeners in state.listeners.values {
        for open in listeners.values { open.listener.receive(Notice(seq: open.newest)) }
      }
    }
  }

  /// Ends all streams; there will be no others.
  func close() {
    let open = state.withLock { state in
      state.isClosed = true
      defer { state.listeners = [:] }
      return state.listeners.values.flatMap(\.values)
    }
    // Outside the lock, because ending calls `onTermination`, which takes it.
    for open in open { open.listener.end() }
  }

  private func remove(_ id: UInt64, of container: ContainerID) {
    // Released outside the lock: ending a continuation can call `onTermination`, which calls this function again.
    let removed = state.withLock { state in
      let removed = state.listeners[container]?.removeValue(forKey: id)
      if state.listeners[container]?.isEmpty == true { state.listeners[container] = nil }
      return removed
    }
    removed?.listener.end()
  }
}
#endif
