import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// Which devices have a save, according to the cloud.
@Suite struct ReachedTests {
  private func holders(_ id: VersionID, _ lab: Lab) throws -> [Int] {
    let devices = try CloudAcceptance.devices(holding: id, in: lab.cloud)
    return lab.devices.indices.filter { devices.contains(Lab.id($0)) }
  }

  private func next(of index: Int, in lab: inout Lab) throws -> EngineEffect {
    let request = lab.takeRequest(index)
    return try #require(request)
  }

  private func answer(to request: EngineEffect, of index: Int, in lab: inout Lab) throws -> EngineEvent {
    let event = try lab.answer(to: request, of: index, cloud: &lab.cloud, using: &lab.random)
    return try #require(event)
  }

  /// The third device sends its cursor.
  private func present(_ cursor: Cursor, in lab: inout Lab) throws {
    let request = ExchangeRequest(cursor: cursor, limit: 10)
    _ = try CloudAcceptance.exchange(request, from: Lab.id(2), now: lab.now, in: &lab.cloud, using: &lab.random)
  }

  /// A lab whose first device has saved, after all devices had fetched everything.
  private func saved(_ text: String, devices: Int = 3) throws -> (lab: Lab, save: VersionRecord) {
    var lab = try Lab(devices: devices)
    for index in 0..<devices { try lab.settle(index) }
    let save = try lab.save(0, text, over: .everyHead)
    try lab.settle(0)
    return (lab, save)
  }

  @Test("a device has a save once its next request confirms it, not when the response is sent; an offline one doesn't")
  func presented() throws {
    var (lab, save) = try saved("a garden")
    #expect(try holders(save.id, lab) == [])
    try lab.step(1, .woke)
    let asked = try next(of: 1, in: &lab)
    let told = try answer(to: asked, of: 1, in: &lab)
    #expect(try holders(save.id, lab) == [], "the response was sent, but hasn't arrived")
    try lab.step(1, told)
    #expect(try holders(save.id, lab) == [])
    let before = lab.cloud.position()
    try lab.settle(1, .woke)
    #expect(try holders(save.id, lab) == [1])
    #expect(lab.cloud.position() == before, "no device is notified of it")
    try lab.settle(0, .woke)
    #expect(try holders(save.id, lab) == [0, 1])
    #expect(try CloudAcceptance.devices(holding: VersionID(high: 9, low: 9), in: lab.cloud).isEmpty)
  }

  @Test("a device doesn't have a save whose contents are still being downloaded, or that its game holds back")
  func staged() throws {
    var (lab, save) = try saved(String(repeating: "x", count: CloudAcceptance.inlineContentBytes + 1))
    try lab.step(1, .woke)
    let asked = try next(of: 1, in: &lab)
    let told = try answer(to: asked, of: 1, in: &lab)
    try lab.step(1, told)
    let download = try next(of: 1, in: &lab)
    guard case .download = download else {
      Issue.record("\(download)")
      return
    }
    // Another exchange runs beside it.
    try lab.step(1, .sync)
    let second = try next(of: 1, in: &lab)
    guard case .exchange(_, let request) = second else {
      Issue.record("\(second)")
      return
    }
    #expect(request.hasStaged && request.cursor == lab.cloud.position())
    let toldAgain = try answer(to: second, of: 1, in: &lab)
    try lab.step(1, toldAgain)
    #expect(try holders(save.id, lab) == [])
    lab.devices[1].engine.holdsArrivals = true
    let downloaded = try answer(to: download, of: 1, in: &lab)
    try lab.step(1, downloaded)
    #expect(lab.devices[1].storage.facts().hasArrivals)
    try lab.settle(1, .woke)
    #expect(try holders(save.id, lab) == [], "all of it has arrived, but its game holds it back")
    _ = try DeviceEngine.deliver(in: &lab.devices[1].storage)
    try lab.settle(1, .woke)
    #expect(try holders(save.id, lab) == [1])
  }

  @Test("a cursor between two pages confirms nothing, but doesn't revoke what the device confirmed before")
  func paged() throws {
    var (lab, save) = try saved("a garden")
    let position = lab.cloud.position()
    var cursor = position
    cursor.ahead = Cursor.Mark(seq: position.seq, mark: position.mark)
    try present(cursor, in: &lab)
    #expect(try holders(save.id, lab) == [])
    try present(position, in: &lab)
    #expect(try holders(save.id, lab) == [2])
    // What a device confirmed before it began to page is still true.
    try present(cursor, in: &lab)
    #expect(try holders(save.id, lab) == [2])
    // A store that was restored from a backup lacks it, until it has fetched everything again.
    try present(.start, in: &lab)
    #expect(try holders(save.id, lab) == [])
  }

  @Test("a device's cursor in a history that was lost in a restore confirms nothing in the current one")
  func otherHistory() throws {
    var lab = try Lab(devices: 3)
    for index in 0..<3 { try lab.settle(index) }
    let backup = lab.cloud
    for text in ["one", "two", "three"] {
      try lab.save(0, text, over: .everyHead)
      try lab.settle(0)
    }
    for _ in 0..<2 { try lab.settle(1, .woke) }
    let ahead = lab.devices[1].storage.facts().cursor
    lab.cloud = backup
    let save = try lab.save(2, "four", over: .everyHead)
    try lab.settle(2)
    #expect(ahead.seq >= lab.cloud.version(save.id)?.seq ?? .max)
    #expect(try holders(save.id, lab).contains(1) == false)
    try lab.step(1, .woke)
    let asked = try next(of: 1, in: &lab)
    let restart = try answer(to: asked, of: 1, in: &lab)
    #expect(try holders(save.id, lab).contains(1) == false, "its cursor is further, but in another history")
    try lab.step(1, restart)
    for _ in 0..<3 { try lab.settle(1, .woke) }
    #expect(try holders(save.id, lab).contains(1))
  }

  @Test("a device that has a later save has the saves that it replaced")
  func replaced() throws {
    var (lab, save) = try saved("one")
    let later = try lab.save(0, "two", over: .versions([save.id]))
    try lab.settle(0)
    for _ in 0..<2 { try lab.settle(1, .woke) }
    #expect(try holders(later.id, lab) == [1])
    // The first device confirmed it when it sent the later one.
    #expect(try holders(save.id, lab) == [0, 1])
  }

  @Test("a device that received a damaged save doesn't have it until it is repaired and fetched again")
  func damaged() throws {
    var (lab, save) = try saved("a garden", devices: 2)
    lab.cloud.damageContent(save.contents[0])
    for _ in 0..<2 { try lab.settle(1, .woke) }
    #expect(!lab.devices[1].storage.hasContent(save.contents[0]) && !lab.devices[1].storage.heads(of: "main").isEmpty)
    #expect(try holders(save.id, lab) == [])
    // As if it started over, and forgot what it had given up.
    for _ in 0..<2 { try lab.settle(1, .sync) }
    #expect(try holders(save.id, lab) == [])
    try lab.settle(0, .woke)
    #expect(lab.cloud.suspectContents().isEmpty)
    #expect(try holders(save.id, lab).contains(1) == false, "it is intact in the cloud, but not on the device")
    for _ in 0..<2 { try lab.settle(1, .woke) }
    #expect(lab.devices[1].storage.hasContent(save.contents[0]))
    #expect(try holders(save.id, lab).contains(1))
  }

  @Test("no device has a head that needs a damaged base, or whose contents the cloud lost")
  func unloadable() throws {
    let tests = CloudAcceptanceTests()
    var (lab, save) = try saved("one")
    let later = try lab.save(0, "two", over: .versions([save.id]))
    try lab.settle(0)
    for _ in 0..<2 { try lab.settle(1, .woke) }
    // As a server may have it: a delta against the first.
    lab.cloud.suspectContent(later.contents[0])
    lab.cloud.putContent(tests.content(Data("two".utf8), base: Data("one".utf8)))
    #expect(try holders(later.id, lab) == [1])
    lab.cloud.suspectContent(save.contents[0])
    #expect(try holders(later.id, lab) == [])
    #expect(try holders(save.id, lab) == [0, 1], "it is replaced, so no device loads it")
    lab.cloud.removeContents(butNot: [])
    #expect(try holders(later.id, lab) == [])
  }
}
