#if Cloud
import FlowerGarden
import Foundation

// The chapter about a player who signs in with the studio's own login.
extension Story {
  mutating func signIn(forger: DemoIssuer) throws {
    report("\n12. A player signs in with the studio's login")
    let phone = try device("signed-in phone")
    try phone.send(.connect(url: server, appKey: appKey))
    try phone.send(.claimStarterGift)
    try phone.send(.plant(pot: "kitchen", flower: "basil"))
    try phone.send(.reachLevel(7))
    try phone.send(.sync)
    try phone.send(.signIn(token: issuer.token(of: "ada")))
    let expected = try phone.readBack().shared
    try phone.quit()
    try FileManager.default.removeItem(at: phone.store)
    report("  Ada signed in on her phone, which is lost now. She signs in on a new one.")

    let bought = try device("Ada's new phone")
    try bought.send(.connect(url: server, appKey: appKey))
    let failure = try bought.ask(.signIn(token: issuer.token(of: "ada"))).refused
    let arrived = try failure == nil && bought.wait(for: .everything(expected))
    promise(
      "a player who signs in on a new device has everything",
      seen: failure
        ?? (arrived ? "level \(expected.level) and \(expected.gems) gems on a new phone" : "not all within 20 s"),
      kept: arrived)
    try bought.quit()

    let brother = try device("her brother's phone")
    try brother.send(.connect(url: server, appKey: appKey))
    try brother.send(.reachLevel(3))
    try brother.send(.sync)
    let taken = try brother.ask(.signIn(token: issuer.token(of: "ada"))).refused
    try brother.send(.sync)
    let level = try brother.readBack().level
    promise(
      "signing in never joins two players unasked",
      seen: taken == nil
        ? "they were joined, and level is \(level)" : "the game is told to ask; level is still \(level)",
      kept: taken != nil && level == 3)
    let forged = try brother.ask(.signIn(token: forger.token(of: "ada"))).refused
    promise("a forged token is refused", seen: forged ?? "it was accepted", kept: forged?.contains("signature") == true)
    try brother.quit()
  }
}
#endif
