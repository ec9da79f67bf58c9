#if Cloud
import KeepsakeReplication
import Testing

@testable import KeepsakeServer

struct GuessLimiterTests {
  private let app = AppID(ofKey: "app")

  private static func peer(_ number: Int) -> PeerAddress {
    PeerAddress(bytes: [10] + [16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) })
  }

  @Test("guesses that haven't been answered yet count, so that many at the same time can't pass the limit together")
  func atOnce() {
    let limiter = GuessLimiter()
    let waits = (0..<50).map { _ in limiter.begin(peer: Self.peer(0), app: app, now: 0) }
    #expect(waits.count { $0 == nil } == ServerLimits.guessesPerPeer)
    #expect(limiter.begin(peer: Self.peer(1), app: app, now: 0) == nil)
  }

  @Test("a right guess isn't counted, and makes room for one that had to wait")
  func takenBack() {
    let limiter = GuessLimiter()
    for _ in 0..<1_000 {
      #expect(limiter.begin(peer: Self.peer(0), app: app, now: 0) == nil)
      limiter.takeBack(peer: Self.peer(0), app: app)
    }
    for _ in 0..<ServerLimits.guessesPerPeer { #expect(limiter.begin(peer: Self.peer(0), app: app, now: 0) == nil) }
    #expect(limiter.begin(peer: Self.peer(0), app: app, now: 0) != nil)
    limiter.takeBack(peer: Self.peer(0), app: app)
    #expect(limiter.begin(peer: Self.peer(0), app: app, now: 0) == nil)
    // It makes room for one, and doesn't forget the wrong ones.
    #expect(limiter.begin(peer: Self.peer(0), app: app, now: 0) != nil)
  }

  @Test("guesses from very many addresses are limited together for each app, until the time has passed")
  func manyPeers() {
    let limiter = GuessLimiter()
    let peers = ServerLimits.guessesPerApp / ServerLimits.guessesPerPeer
    #expect(peers <= ServerLimits.rememberedPeers)
    for peer in 0..<peers {
      let waits = (0..<ServerLimits.guessesPerPeer).map { _ in limiter.begin(peer: Self.peer(peer), app: app, now: 0) }
      guard waits.allSatisfy({ $0 == nil }) else {
        Issue.record("the guesses of peer \(peer) are refused")
        return
      }
    }
    #expect(limiter.begin(peer: Self.peer(1 << 20), app: app, now: 0) == ServerLimits.pairingSeconds + 1)
    #expect(limiter.begin(peer: Self.peer(1 << 20), app: AppID(ofKey: "other"), now: 0) == nil)
    #expect(limiter.begin(peer: Self.peer(1 << 20), app: app, now: Int64(ServerLimits.pairingSeconds) * 1000) == nil)
  }

  @Test("guesses from more addresses than are remembered let nobody who was stopped guess again")
  func overflow() {
    let limiter = GuessLimiter()
    for _ in 0..<ServerLimits.guessesPerPeer { #expect(limiter.begin(peer: Self.peer(0), app: app, now: 0) == nil) }
    #expect(limiter.begin(peer: Self.peer(0), app: app, now: 0) != nil)
    for peer in 1...ServerLimits.rememberedPeers + 5_000 {
      _ = limiter.begin(peer: Self.peer(peer), app: AppID(ofKey: "\(peer % 7)"), now: 0)
    }
    #expect(limiter.begin(peer: Self.peer(0), app: app, now: 0) != nil)
  }
}
#endif
