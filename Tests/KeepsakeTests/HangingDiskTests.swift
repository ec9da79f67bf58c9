import Foundation
import Testing

@testable import Keepsake
@testable import KeepsakeStore

/// A disk that answers nothing, while as much waits for it as may wait.
@Suite struct HangingDiskTests {
  /// Beyond this the disk goes on by itself, so that a call that waits for it fails instead of hanging for ever.
  private static let patience: TimeInterval = 20

  @Test("while the disk hangs, suspending, ending, flushing and closing give up in time, and all is kept once it goes on")
  func givesUp() async throws {
    try await onThread {
      let device = try Device()
      let game = try device.open()
      let loud = PreferenceKey("loud", default: 1)
      let (hangs, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      _ = try game.core.store.submit { _, _ in
        hangs.signal()
        goesOn.wait()
      }
      DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { goesOn.signal() }
      hangs.wait()
      for _ in 0..<CommitQueue.maximumWaiting { _ = try game.core.store.submit { _, _ in } }

      let autosave = Autosave(
        game, to: .main, every: .seconds(3_600), atSignals: .ignored, within: .milliseconds(20)
      ) { World(level: 42) }
      #expect(storeErrorCode { try autosave.suspend() } == .timedOut)
      #expect(autosave.isSuspended)
      #expect(storeErrorCode { try autosave.terminate() } == .timedOut)
      #expect(autosave.isEndRequested)
      try game.preferences.set(7, for: loud)
      #expect(storeErrorCode { try game.preferences.flush(within: .milliseconds(20)) } == .timedOut)
      #expect(storeErrorCode { try game.close(within: .milliseconds(20)) } == .timedOut)
      try game.preferences.set(8, for: loud)

      goesOn.signal()
      try autosave.terminate(within: .seconds(60))
      try game.close(within: .seconds(60))
      let again = try device.open()
      defer { end(again) }
      #expect(try again.saves.load(.main)?.level == 42)
      #expect(again.preferences[loud] == 8)
    }
  }

  @Test("closing gives up in time also where only the store has something to do")
  func closesInTime() async throws {
    try await onThread {
      let game = try Device().open()
      let (hangs, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      _ = try game.core.store.submit { _, _ in
        hangs.signal()
        goesOn.wait()
      }
      DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { goesOn.signal() }
      hangs.wait()
      for _ in 0..<CommitQueue.maximumWaiting { _ = try game.core.store.submit { _, _ in } }
      #expect(storeErrorCode { try game.close(within: .milliseconds(20)) } == .timedOut)
      goesOn.signal()
      try game.close(within: .seconds(60))
    }
  }
}
