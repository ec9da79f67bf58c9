import Foundation
import TestSupport
import Testing

@testable import Keepsake
@testable import KeepsakeStore

/// A disk that doesn't respond, while the queue of commits is full.
@Suite struct HangingDiskTests {
  enum Call: CaseIterable {
    case suspend, terminate, flush, close, closeWithPreferences
  }

  private static let loud = PreferenceKey("loud", default: 1)

  /// Makes a store hang with a full queue of commits.
  private final class Hang: Sendable {
    /// After this time the disk continues by itself, so that a call that waits for it fails the test instead of hanging
    /// forever.
    static let patience = TimeInterval(Patience.limit.components.seconds)

    private let goesOn = DispatchSemaphore(value: 0)
    private let ended = Shared(false)

    init(_ game: GameData) throws {
      let hangs = DispatchSemaphore(value: 0)
      _ = try game.core.store.submit { [goesOn] _, _ in
        hangs.signal()
        goesOn.wait()
      }
      hangs.wait()
      for _ in 0..<CommitQueue.maximumWaiting { _ = try game.core.store.submit { _, _ in } }
      DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { [self] in end() }
    }

    var isOver: Bool { ended.value }

    func end() {
      ended.value = true
      goesOn.signal()
    }
  }

  @Test(
    "while the disk hangs, calls with a time limit throw in time, and everything is kept once it continues",
    arguments: Call.allCases)
  func givesUp(call: Call) async throws {
    let device = try Device()
    let (code, hung) = try await onThread {
      let game = try device.open()
      let autosave = Autosave(
        game, to: .main, every: .seconds(3_600), atSignals: .ignored, within: .milliseconds(20)
      ) { World(level: 42) }
      let hang = try Hang(game)
      if call == .flush || call == .closeWithPreferences { try game.preferences.set(7, for: Self.loud) }
      let code = storeErrorCode {
        switch call {
        case .suspend: try autosave.suspend()
        case .terminate: try autosave.terminate()
        case .flush: try game.preferences.flush(within: .milliseconds(20))
        case .close, .closeWithPreferences: try game.close(within: .milliseconds(20))
        }
      }
      let hung = !hang.isOver
      hang.end()
      // A game that couldn't be closed is still usable.
      if hung {
        try game.preferences.set(8, for: Self.loud)
        try autosave.terminate(within: Patience.limit)
      }
      try game.close(within: Patience.limit)
      return (code, hung)
    }
    #expect(code == .timedOut)
    #expect(hung, "the call waited for the disk")
    let again = try device.open()
    defer { end(again) }
    #expect(try again.saves.load(.main)?.level == 42)
    #expect(again.preferences[Self.loud] == 8)
  }
}
