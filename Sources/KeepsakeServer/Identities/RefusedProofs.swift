#if Cloud
import HTTPTypes
import KeepsakeReplication
import Synchronization

/// Counts the proofs of each device that were checked and are no good, and the checks of each that are under way.
///
/// By device, and apart from pairing codes: nobody can guess a signature, so that the limit only bounds what checking
/// costs; and all players behind one address would wait because of one of them.
///
/// Kept in memory only.
final class RefusedProofs: Sendable {
  private struct Count {
    var refused = 0
    var underWay = 0
    var since: Int64
  }
  private struct State {
    var devices: [DeviceID: Count] = [:]
    var sweptMilliseconds: Int64?
  }
  private enum Next {
    case go
    case wait(seconds: Int)
    case busy
  }
  private static let windowMilliseconds = Int64(ServerLimits.pairingSeconds) * 1_000
  private static let sweepMilliseconds: Int64 = 1_000
  private let state = Mutex(State())

  /// Runs the check of a proof of this device.
  ///
  /// - Throws: What `check` throws; an `APIError` if too many of the device's proofs were refused or are being checked.
  func counting<Result>(
    _ device: DeviceID, now: Int64, _ check: () async throws -> Result
  ) async throws -> Result {
    switch begin(device, now: now) {
    case .go: break
    case .busy: throw APIError.overBudget("checks of this device's identities")
    case .wait(let seconds):
      throw APIError(
        .tooManyRequests, .tooManyGuesses, "Too many refused proofs of identities; try again later.",
        retryAfterSeconds: seconds)
    }
    do {
      let result = try await check()
      end(device, isRefused: false)
      return result
    } catch {
      end(device, isRefused: (error as? APIError)?.code == .identityRefused)
      throw error
    }
  }

  private func begin(_ device: DeviceID, now: Int64) -> Next {
    state.withLock { state in
      guard Self.hasRoom(for: device, in: &state, now: now) else { return .go }
      var count = state.devices[device] ?? Count(since: now)
      if now &- count.since >= Self.windowMilliseconds { (count.refused, count.since) = (0, now) }
      if count.refused >= ServerLimits.refusedProofsPerDevice {
        let left = Self.windowMilliseconds &- (now &- count.since)
        return .wait(seconds: Int(left / 1_000) + 1)
      }
      guard count.underWay < ServerLimits.identityChecksPerDevice else { return .busy }
      count.underWay += 1
      state.devices[device] = count
      return .go
    }
  }

  private func end(_ device: DeviceID, isRefused: Bool) {
    state.withLock { state in
      guard var count = state.devices[device] else { return }
      count.underWay -= 1
      if isRefused { count.refused += 1 }
      state.devices[device] = count.refused == 0 && count.underWay == 0 ? nil : count
    }
  }

  /// Whether a device can be counted: forgets those whose counts are over if there is no room. With so many devices,
  /// the limit on registering them is the one that counts.
  private static func hasRoom(for device: DeviceID, in state: inout State, now: Int64) -> Bool {
    if state.devices[device] != nil || state.devices.count < ServerLimits.rememberedPeers { return true }
    if let swept = state.sweptMilliseconds, now >= swept, now - swept < sweepMilliseconds { return false }
    state.sweptMilliseconds = now
    state.devices = state.devices.filter { $0.value.underWay > 0 || now &- $0.value.since < windowMilliseconds }
    return state.devices.count < ServerLimits.rememberedPeers
  }
}
#endif
