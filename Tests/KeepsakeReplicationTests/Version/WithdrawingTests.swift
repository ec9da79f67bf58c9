import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// Saves that are kept from being sent, and what replaces them.
@Suite struct WithdrawingTests {
  private func lab() throws -> Lab {
    var lab = try Lab(devices: 2)
    for index in lab.devices.indices { try lab.settle(index) }
    return lab
  }

  @Test("a save that replaces one which never left the device replaces what that one had replaced")
  func seesThroughWhatNeverLeft() throws {
    var lab = try lab()
    let shared = try lab.save(0, "shared", over: .everyHead)
    for index in 0...1 { try lab.settle(index) }
    let kept = try lab.save(0, "kept back", over: .versions([shared.id]))
    try DeviceCommit.withdraw("main", in: &lab.devices[0].storage)
    #expect(lab.devices[0].storage.outboxCount() == 0)
    #expect(lab.devices[0].storage.version(kept.id)?.neverLeft == true)
    let last = try lab.save(0, "last", over: .versions([kept.id]))
    #expect(last.covers == [shared.id, kept.id].sorted())
    for index in [0, 1, 0] { try lab.settle(index) }
    #expect(lab.cloud.heads(of: "main") == [last.id])
    for device in lab.devices {
      #expect(device.storage.heads(of: "main") == [last.id])
      #expect(try !Resolution.view(of: "main", in: device.storage).isConflict)
    }
  }

  @Test("a save made offline by going back to one that was replaced before it was sent replaces what that one replaced")
  func goingBackOffline() throws {
    var lab = try lab()
    let shared = try lab.save(0, "shared", over: .everyHead)
    for index in 0...1 { try lab.settle(index) }
    let first = try lab.save(0, "first", over: .versions([shared.id]))
    let second = try lab.save(0, "second", over: .versions([first.id]))
    #expect(lab.devices[0].storage.version(first.id)?.neverLeft == true)
    let back = try lab.save(0, "back", over: .versions([first.id]))
    #expect(back.covers == [shared.id, first.id].sorted())
    // The player then keeps only this one.
    let last = try lab.save(0, "last", over: .versions([back.id, second.id]))
    for index in [0, 1, 0] { try lab.settle(index) }
    #expect(lab.cloud.heads(of: "main") == [last.id])
    for device in lab.devices {
      #expect(device.storage.heads(of: "main") == [last.id])
      #expect(try !Resolution.view(of: "main", in: device.storage).isConflict)
    }
  }

  @Test("what is withdrawn of a slot are its saves alone: deletes, other slots and values are still sent")
  func nothingElse() throws {
    var lab = try lab()
    let old = try lab.save(0, "old", slot: "gone", over: .everyHead)
    for index in 0...1 { try lab.settle(index) }
    let deleted = try lab.save(0, "", slot: "gone", over: .versions([old.id]), tombstone: true)
    let kept = try lab.save(0, "kept back", over: .everyHead)
    let other = try lab.save(0, "other", slot: "other", over: .everyHead)
    for slot in ["gone", "main"] { try DeviceCommit.withdraw(slot, in: &lab.devices[0].storage) }
    for index in [0, 1] { try lab.settle(index) }
    #expect(lab.cloud.heads(of: "gone") == [deleted.id] && lab.cloud.heads(of: "other") == [other.id])
    #expect(lab.cloud.version(kept.id) == nil && lab.devices[0].storage.heads(of: "main") == [kept.id])
    // A group in which nothing but values is left.
    try lab.commit(0, Lab.level(4))
    try lab.save(0, "kept back, too", over: .versions([kept.id]))
    #expect(lab.devices[0].storage.outboxCount() == 1)
    try DeviceCommit.withdraw("main", in: &lab.devices[0].storage)
    for index in [0, 1] { try lab.settle(index) }
    #expect(lab.level(1) == .max(.int(4)) && lab.cloud.heads(of: "main").isEmpty)
  }
}
