import Dispatch
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Notes that the process was told to end, for a game loop to look at: nothing of the game runs in a signal's handler.
final class SignalWatch: Sendable {
  #if os(Windows)
    static func begin() -> SignalWatch? { nil }
    static func raise(_ signal: Int32) {}
    func take() -> Int32? { nil }
    func end() {}
  #else
    private static let watched: [Int32] = [SIGTERM, SIGINT, SIGHUP]

    /// Unchecked: Dispatch's sources may be used from any thread, the type just doesn't say so.
    private struct Source: @unchecked Sendable {
      let source: any DispatchSourceSignal
    }
    private struct State {
      var sources: [Source] = []
      var signal: Int32?
      var isTaken = false
    }
    private let state = Mutex(State())

    /// Watches those of the signals that nobody handles yet; nil if there are none.
    static func begin() -> SignalWatch? {
      let free = watched.filter(isDefault)
      guard !free.isEmpty else { return nil }
      let watch = SignalWatch()
      for number in free {
        // Dispatch sees a signal only if its default doesn't end the process first.
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number, queue: .global(qos: .userInitiated))
        source.setEventHandler { [weak watch] in watch?.note(number) }
        source.activate()
        let shared = Source(source: source)
        watch.state.withLock { $0.sources.append(shared) }
      }
      return watch
    }

    /// The signal that came, once.
    func take() -> Int32? {
      state.withLock { state in
        guard !state.isTaken, let signal = state.signal else { return nil }
        state.isTaken = true
        return signal
      }
    }

    /// Gives the signals back to their defaults.
    func end() {
      state.withLock { state in
        for entry in state.sources {
          entry.source.cancel()
          signal(Int32(entry.source.handle), SIG_DFL)
        }
        state.sources = []
      }
    }

    /// Lets a signal do what it would have done.
    static func raise(_ number: Int32) {
      signal(number, SIG_DFL)
      kill(getpid(), number)
    }

    private func note(_ number: Int32) {
      let isSecond = state.withLock { state in
        defer { state.signal = state.signal ?? number }
        return state.signal != nil
      }
      // Asked twice, and the game hasn't ended: it hangs, or the player insists.
      if isSecond { Self.raise(number) }
    }

    private static func isDefault(_ number: Int32) -> Bool {
      var action = sigaction()
      guard sigaction(number, nil, &action) == 0 else { return false }
      #if canImport(Darwin)
        return action.__sigaction_u.__sa_handler == nil
      #else
        return action.__sigaction_handler.sa_handler == nil
      #endif
    }
  #endif
}
