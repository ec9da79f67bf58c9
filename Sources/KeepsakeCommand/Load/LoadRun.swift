#if Cloud
import Foundation
import KeepsakeReplication
import Synchronization

/// Runs a load: each device and each attacker on a thread of its own.
struct LoadRun {
  /// What a thread needs besides what it does.
  private static let stackBytes = 512 << 10
  /// Devices that register at a time.
  private static let registeringAtOnce = 8
  /// Seconds for which registering is repeated.
  private static let mostTries = 120

  let plan: LoadPlan
  let address: LoadAddress
  let appKey: String
  /// The server's process, if it is on this machine.
  let server: Int32?

  struct Result {
    var record: LoadRecord
    var seconds: Double
    /// Before the event streams were opened.
    var withoutStreams: ServerProcessor?
    var before: ServerProcessor?
    var after: ServerProcessor?
  }

  /// Registers all devices, and then measures for as long as planned.
  ///
  /// - Parameter progress: Receives what is being done.
  /// - Throws: A `CommandFailure` if the devices can't register.
  func run(_ progress: (String) -> Void) throws -> Result {
    let clock = LoadClock()
    LoadContents.prepare()
    let devices = (0..<plan.devices).map { LoadDevice(plan, number: $0, at: address, appKey: appKey, clock: clock) }
    progress("registering \(CountText.of(plan.devices, "device"))")
    try register(devices)
    let withoutStreams = try server.map { try ServerProcessor(of: $0) }
    let streams: LoadStreams?
    do throws(LoadError) {
      streams =
        plan.streams > 0
        ? try LoadStreams(plan.streams, at: address, tokens: devices.compactMap { $0.account?.token }, clock: clock)
        : nil
    } catch {
      throw CommandFailure(
        .unavailable, "\(CountText.of(plan.streams, "event stream")) can't be opened: \(error.kind)",
        next: "ask for fewer with --streams, or raise the limit of open files (ulimit -n)")
    }
    let attackers = (0..<(plan.attacks.isEmpty ? 0 : plan.attackers)).map { number in
      HostileClient(plan.attacks[number % plan.attacks.count], at: address, appKey: appKey, clock: clock)
    }
    let before = try server.map { try ServerProcessor(of: $0) }
    let began = ContinuousClock.now
    clock.begin()
    let ended = ThreadGroup()
    for device in devices { ended.run(Self.stackBytes) { [device = Unshared(device)] in device.value.run() } }
    for attacker in attackers { ended.run(Self.stackBytes) { [attacker = Unshared(attacker)] in attacker.value.run() } }
    if let streams { ended.run(Self.stackBytes) { [streams = Unshared(streams)] in streams.value.run() } }
    while true {
      let passed = (ContinuousClock.now - began) / .seconds(1)
      guard passed < plan.seconds else { break }
      progress("loading: \(Int(passed)) of \(Int(plan.seconds)) s")
      Thread.sleep(forTimeInterval: min(0.1, plan.seconds - passed))
    }
    let seconds = (ContinuousClock.now - began) / .seconds(1)
    let after = try server.map { try ServerProcessor(of: $0) }
    clock.end()
    ended.wait()
    var record = LoadRecord()
    for device in devices { record.merge(device.record) }
    for attacker in attackers { record.merge(attacker.record) }
    if let streams { record.merge(streams.record) }
    return Result(record: record, seconds: seconds, withoutStreams: withoutStreams, before: before, after: after)
  }

  /// Repeats what a server refuses because it was done too often: it may limit how many devices register.
  private static func patiently(_ body: () throws(LoadError) -> Void) throws(LoadError) {
    for _ in 1..<mostTries {
      do throws(LoadError) {
        return try body()
      } catch {
        guard error.kind.hasPrefix("429") else { throw error }
        Thread.sleep(forTimeInterval: 1)
      }
    }
    try body()
  }

  /// The first device of each player registers, the others join it.
  private func register(_ devices: [LoadDevice]) throws {
    let failure = Mutex<LoadError?>(nil)
    let groups = stride(from: 0, to: devices.count, by: plan.perPlayer).map { first in
      Array(devices[first..<min(first + plan.perPlayer, devices.count)])
    }
    for start in stride(from: 0, to: groups.count, by: Self.registeringAtOnce) {
      let ended = ThreadGroup()
      for group in groups[start..<min(start + Self.registeringAtOnce, groups.count)] {
        ended.run(Self.stackBytes) { [group = Unshared(group)] in
          do throws(LoadError) {
            guard let first = group.value.first else { return }
            try Self.patiently { () throws(LoadError) in try first.register() }
            for device in group.value.dropFirst() {
              try Self.patiently { () throws(LoadError) in try device.join(try first.pairingCode()) }
            }
          } catch {
            failure.withLock { $0 = $0 ?? error }
          }
        }
      }
      ended.wait()
    }
    if let error = failure.withLock({ $0 }) {
      // Such as "403 bad_app_key".
      let isRefused = ["401", "403"].contains { error.kind.hasPrefix($0) }
      throw CommandFailure(
        isRefused ? .permission : .unavailable,
        "devices can't register at \(address.host):\(address.port): \(error.kind)",
        next: "check --url and --app-key, and whether the server limits registrations")
    }
  }
}

/// Threads that are waited for together.
final class ThreadGroup: Sendable {
  private let group = DispatchGroup()

  func run(_ stackBytes: Int, _ body: @escaping @Sendable () -> Void) {
    group.enter()
    let thread = Thread { [group] in
      body()
      group.leave()
    }
    thread.stackSize = stackBytes
    thread.start()
  }

  func wait() { group.wait() }
}

/// A value that is given to one thread, and used again when that has ended.
struct Unshared<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) { self.value = value }
}
#endif
