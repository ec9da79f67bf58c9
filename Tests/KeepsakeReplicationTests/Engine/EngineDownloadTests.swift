import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// Saves of which only the record is on the device.
@Suite struct EngineDownloadTests {
  @Test("A save that the game replaces while it is being downloaded isn't reported as damaged")
  func replacedOnItsWay() throws {
    var options = DeviceEngine.Options()
    options.inlineBytes = 200
    var lab = try Lab(devices: 2, options: options)
    lab.devices[1].engine.downloadRules = DownloadRules(largest: 10)
    let begun = try lab.save(0, "begun", over: .everyHead)
    try lab.settle(0)
    try lab.settle(1)
    let large = try lab.save(1, String(repeating: "large ", count: 500), over: .everyHead)
    try lab.settle(1)
    // Concurrently the other device deletes the save that it was made from.
    try lab.save(0, "", over: .everyHead, tombstone: true)
    try lab.settle(0)
    try lab.settle(1)
    lab.devices[1].storage.evict(large.id)
    try lab.step(1, .committed)
    let asked = lab.takeRequests(1)
    guard case .download(_, large.contents[0]) = try #require(asked.first), asked.count == 1 else {
      Issue.record("both sides of a conflict are needed: \(asked)")
      return
    }

    let new = try lab.save(1, "new", over: .everyHead)
    try lab.step(1, .committed)
    try answerAll(&lab)
    // The cloud removes what no head needs.
    lab.cloud.removeContents(butNot: Set(begun.contents + new.contents))
    if let event = try lab.answer(to: asked[0], of: 1, cloud: &lab.cloud, using: &lab.random) { try lab.step(1, event) }
    try answerAll(&lab)
    #expect(!lab.devices[1].notifications.contains(.damaged(large.contents[0])))
    #expect(lab.devices[1].engine.status.phase == .idle)
  }

  /// Delivers everything without an event from the game, which would reset failures.
  private func answerAll(_ lab: inout Lab) throws {
    for _ in 0..<50 {
      guard let effect = lab.takeRequest(1) else { return }
      if let event = try lab.answer(to: effect, of: 1, cloud: &lab.cloud, using: &lab.random) { try lab.step(1, event) }
    }
    Issue.record("the engine never becomes idle")
  }
}
