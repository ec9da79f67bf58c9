#if Cloud
import FlowerGarden
import Foundation

// The chapter about a player with one device, who loses it.
extension Story {
  mutating func comeBack() throws {
    report("\n11. Another player's only phone is lost")
    let phone = try device("only phone")
    try phone.send(.connect(url: server, appKey: appKey))
    try phone.send(.claimStarterGift)
    try phone.send(.plant(pot: "balcony", flower: "sunflower"))
    try phone.send(.reachLevel(4))
    try phone.send(.sync)
    guard let code = try phone.send(.makeRecoveryCode).code else {
      throw DemoDevice.Refused(device: phone.name, why: "no recovery code came")
    }
    let expected = try phone.readBack().shared
    try phone.quit()
    try FileManager.default.removeItem(at: phone.store)
    report("  The player wrote down the code \(code). The phone is gone, with everything on it.")

    let bought = try device("bought phone")
    try bought.send(.connect(url: server, appKey: appKey))
    let mistake = try bought.ask(.recover(code: Self.mistyped(code))).refused
    promise(
      "a mistyped recovery code is told by its group", seen: mistake ?? "it was not refused",
      kept: mistake?.contains("group 2") == true)
    let failure = try bought.ask(.recover(code: code.lowercased())).refused
    let arrived = try bought.wait(for: .everything(expected))
    promise(
      "a player who lost the only device has everything",
      seen: failure
        ?? (arrived ? "level \(expected.level) and \(expected.gems) gems on a bought phone" : "not all within 20 s"),
      kept: failure == nil && arrived)
    let found = try device("phone of whoever found the note")
    try found.send(.connect(url: server, appKey: appKey))
    let again = try found.ask(.recover(code: code)).refused
    promise("a recovery code works once", seen: again ?? "it was accepted again", kept: again != nil)
    try found.quit()
    try bought.quit()
  }

  /// The code with a wrong character in its second group.
  private static func mistyped(_ code: String) -> String {
    var characters = Array(code)
    characters[7] = characters[7] == "W" ? "X" : "W"
    return String(characters)
  }
}
#endif
