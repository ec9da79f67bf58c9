import CPeers
public import Foundation

/// One thing to time. `run` gives what one execution took and has released its output when it returns, off the clock.
///
/// The clock is that of the calling thread. On an idle machine it shows what the one on the wall shows; on a busy one
/// it leaves out when others run, which would otherwise count against whatever takes longer than the scheduler's slice,
/// and so flatter the fast.
public struct TimedTask {
  public let encoder: String
  public let action: String
  public let bytes: Data?
  public let run: () throws -> Duration

  /// - Parameters:
  ///   - bytes: What is written or read, for its size.
  ///   - calls: How often one execution calls; what is told is the time of one call.
  public init<Output>(
    _ encoder: String, _ action: String, bytes: Data? = nil, calls: Int = 1, _ body: @escaping () throws -> Output
  ) {
    self.encoder = encoder
    self.action = action
    self.bytes = bytes
    run = {
      var outputs = ContiguousArray<Output>()
      outputs.reserveCapacity(calls)
      let start = processor_nanoseconds()
      for _ in 0..<calls { outputs.append(try body()) }
      let took = processor_nanoseconds() - start
      withExtendedLifetime(outputs) {}
      return .nanoseconds(took) / calls
    }
  }

  /// With a clock of its own, the one on the wall.
  init(_ encoder: String, _ action: String, bytes: Data?, timed run: @escaping () throws -> Duration) {
    self.encoder = encoder
    self.action = action
    self.bytes = bytes
    self.run = run
  }
}
