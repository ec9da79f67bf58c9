import Foundation
import KeepsakeReplication
import KeepsakeSync
import Synchronization

/// One device's network, across all runs of its game.
final class DeviceLine: Sendable {
  /// What happens to a request.
  enum Fate: Sendable {
    case arrives
    case isLost
    case losesItsAnswer
  }

  private struct State {
    var network = TestNetwork.good
    /// Requests since the network was set, and how many of them were lost.
    var counted = 0
    var lost = 0
    var traffic = TestTraffic()
    var listeners: [UUID: AsyncThrowingStream<CloudEvent, any Error>.Continuation] = [:]
  }
  private let state = Mutex(State())
  private let clock: TestClock
  /// The device's identifier in the cloud.
  let device: DeviceID

  init(clock: TestClock) {
    self.clock = clock
    var random = SystemRandomNumberGenerator()
    device = DeviceID(using: &random)
  }

  var traffic: TestTraffic { state.withLock { $0.traffic } }

  var network: TestNetwork {
    get { state.withLock { $0.network } }
    set {
      switch newValue {
      case .slow(let speed):
        precondition(speed >= 1, "TestNetwork.slow: \(speed) bytes a second would never arrive; use .cut")
      case .losing(let every): precondition(every >= 1, "TestNetwork.losing: one request in \(every) can't be lost")
      case .good, .cut: break
      }
      state.withLock { ($0.network, $0.counted, $0.lost) = (newValue, 0, 0) }
      if newValue == .cut { dropListeners() }
    }
  }

  // MARK: Requests

  /// Sends a request of this size to the cloud. Takes as long as the network needs.
  func send(_ bytes: Int) async throws(TransportFailure) -> Fate {
    let (fate, speed) = try begin(bytes)
    try await pass(bytes, at: speed)
    return fate
  }

  /// Sends a response of this size back to the device.
  func receive(_ bytes: Int) async throws(TransportFailure) {
    try await pass(bytes, at: speed)
    state.withLock { $0.traffic.bytesReceived += Int64(bytes) }
  }

  private var speed: Int? {
    if case .slow(let speed) = network { return speed }
    return nil
  }

  private func begin(_ bytes: Int) throws(TransportFailure) -> (Fate, speed: Int?) {
    let begun = state.withLock { state -> (Fate, speed: Int?)? in
      guard state.network != .cut else { return nil }
      state.traffic.requests += 1
      state.traffic.bytesSent += Int64(bytes)
      state.counted += 1
      switch state.network {
      case .slow(let speed): return (.arrives, speed)
      case .losing(let every) where state.counted % every == 0:
        state.lost += 1
        return (state.lost.isMultiple(of: 2) ? .losesItsAnswer : .isLost, nil)
      case .good, .cut, .losing: return (.arrives, nil)
      }
    }
    guard let begun else { throw Self.cut }
    return begun
  }

  private func pass(_ bytes: Int, at speed: Int?) async throws(TransportFailure) {
    if let speed {
      do {
        try await clock.transfer(taking: .seconds(Double(bytes) / Double(speed)))
      } catch {
        throw TransportFailure(.interrupted, "the device cancelled the request")
      }
    }
    // The connection may have been cut meanwhile.
    guard network != .cut else { throw TransportFailure(.interrupted, "the network was cut") }
  }

  static let cut = TransportFailure(.unreachable, "the network is cut")

  // MARK: Events

  /// Adds a listener, which is ended when the network is cut. Returns nil if it is already cut.
  func add(_ listener: AsyncThrowingStream<CloudEvent, any Error>.Continuation) -> UUID? {
    let id = UUID()
    return state.withLock { state in
      guard state.network != .cut else { return nil }
      state.listeners[id] = listener
      return id
    }
  }

  func remove(_ id: UUID) {
    // Released outside the lock: ending a continuation may call this again.
    _ = state.withLock { $0.listeners.removeValue(forKey: id) }
  }

  func dropListeners() {
    let listeners = state.withLock { state in
      defer { state.listeners = [:] }
      return Array(state.listeners.values)
    }
    for listener in listeners { listener.finish(throwing: TransportFailure(.interrupted, "the network was cut")) }
  }
}
