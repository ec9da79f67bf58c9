import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// What saves cover while others of their slot are being sent, were refused, or can't be sent any more.
@Suite struct CoversTests {
  @Test(
    "covers don't grow although every save is replaced before the exchange that sends it ends, even if some get lost",
    arguments: [false, true])
  func savesFasterThanExchanges(contentsAreUploaded: Bool) throws {
    var lab = try lab(devices: 2, inlineBytes: contentsAreUploaded ? 100 : 256 * 1024)
    var draws = SeededGenerator(seed: 7)
    var last = try lab.save(0, "first", over: .everyHead)
    for number in 0..<300 {
      try lab.step(0, .sync)
      // Each request is in flight while the game saves up to twice.
      for effect in lab.takeRequests() {
        for save in 0..<Int.random(in: 1...2, using: &draws) {
          last = try lab.save(0, "\(number) \(save) " + Self.text(using: &draws), over: .versions([last.id]))
          #expect(last.covers.count <= 6)
        }
        try deliver(effect, losing: number % 10 == 9, in: &lab)
      }
    }
    #expect(lab.cloud.position().seq > 100, "too few of them were sent in between")
    try expectHead(last, in: &lab)
  }

  @Test("a refused save no longer counts once one that replaces it is sent, whatever was accepted in between")
  func refusedSaveIsSettled() throws {
    var lab = try lab(devices: 2)
    let root = try lab.save(0, "root", over: .everyHead)
    try lab.settle(0)
    let lost = try lab.save(0, "lost", over: .versions([root.id]))
    try lab.step(0, .committed)
    let first = lab.takeRequest(0)?.request
    try lab.step(0, .failed(request: #require(first), TransportFailure(.interrupted, "cut")))
    let refused = try lab.save(0, "refused", over: .versions([lost.id]))
    #expect(refused.covers == [root.id, lost.id].sorted())
    // The cloud refuses that save; while the one before it is sent again without it, the game saves.
    try lab.step(0, .sync)
    let second = lab.takeRequest(0)?.request
    let refusal = Refusal(item: ExchangeRules.item(refused.id), reason: .tooLarge, message: "too large")
    let response = ExchangeResponse(
      outcome: .refused([refusal]), changes: [], contents: [], wallet: nil, cursor: lab.cloud.position(), more: false,
      serverTimeMilliseconds: 0)
    try lab.step(0, .answered(request: #require(second), response))
    let again = lab.takeRequest(0)
    let last = try lab.save(0, "last", over: .versions([refused.id]))
    try deliver(#require(again), in: &lab)
    #expect(lab.cloud.heads(of: "main") == [lost.id])
    #expect(lab.devices[0].storage.version(last.id)?.record.covers == [lost.id, refused.id].sorted())
    try expectHead(last, in: &lab)
    #expect(lab.cloud.version(refused.id) == nil && lab.devices[0].engine.status.refusals.isEmpty)
  }

  @Test("a save that can't be sent any more leaves no replaced save as a head, even if what replaced it is refused")
  func lostHistoryIsCovered() throws {
    var lab = try lab(devices: 2)
    let shared = try lab.save(0, "shared", over: .everyHead)
    try lab.settle(0)
    try lab.settle(1)
    // Offline: a save, a launch of the game, and saves that replace it, until its contents are pruned.
    var last = try lab.save(0, "forgotten", over: .versions([shared.id]))
    let forgotten = last
    lab.devices[0].engine = DeviceEngine()
    try DeviceCommit.opened(in: &lab.devices[0].storage, using: &lab.random)
    for number in 0..<3 { last = try lab.save(0, "save \(number)", over: .versions([last.id])) }
    lab.devices[0].storage.evict(forgotten.id)
    #expect(!lab.devices[0].storage.hasContent(forgotten.contents[0]))
    #expect(last.covers.contains(shared.id))
    lab.quota = 1
    try lab.settle(0)
    #expect(lab.devices[0].engine.status.refusals.map(\.refusal.item) == [ExchangeRules.item(last.id)])
    last = try lab.save(0, "after", over: .versions([last.id]))
    lab.quota = nil
    // No call of the game's that would have the refused save sent again.
    try lab.settle(0, .committed)
    try expectHead(last, in: &lab)
  }

  /// More than 100 bytes, also if compressed.
  private static func text(using draws: inout SeededGenerator) -> String {
    (0..<20).map { _ in "\(UInt64.random(in: 0 ... .max, using: &draws))" }.joined()
  }

  private func lab(devices: Int, inlineBytes: Int = 256 * 1024) throws -> Lab {
    var options = DeviceEngine.Options()
    options.inlineBytes = inlineBytes
    var lab = try Lab(devices: devices, options: options)
    for index in lab.devices.indices { try lab.settle(index) }
    return lab
  }

  /// Delivers a request of the first device to the cloud, and the response, unless that is lost.
  private func deliver(_ effect: EngineEffect, losing isLost: Bool = false, in lab: inout Lab) throws {
    let answer = try lab.answer(to: effect, of: 0, cloud: &lab.cloud, using: &lab.random)
    guard let answer, let request = effect.request else { return }
    try lab.step(0, isLost ? .failed(request: request, TransportFailure(.interrupted, "cut")) : answer)
    if isLost { lab.now += 600_000 }
  }

  /// Both devices and the cloud end with this version alone, and nothing waits.
  private func expectHead(_ version: VersionRecord, in lab: inout Lab) throws {
    for index in [0, 1, 0] { try lab.settle(index) }
    #expect(lab.cloud.heads(of: version.slot) == [version.id])
    for device in lab.devices { #expect(device.storage.heads(of: version.slot) == [version.id]) }
    #expect(lab.devices[0].storage.outboxCount() == 0)
  }
}
