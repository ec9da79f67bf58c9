import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// How a cloud finds out that a device's store went back to an older state.
@Suite struct SetBackAcceptanceTests {
  private static let device = Lab.id(2)

  /// A lab whose cloud has several changes, and the positions between them.
  private func played(_ count: Int = 4) throws -> (lab: Lab, positions: [Cursor]) {
    var lab = try Lab()
    var positions: [Cursor] = []
    for number in 0..<count {
      try lab.save(0, "save \(number)", over: .everyHead)
      try lab.settle(0)
      positions.append(lab.cloud.position())
    }
    return (lab, positions)
  }

  @discardableResult
  private func send(
    _ cursor: Cursor, setBack: SetBack? = nil, hasStaged: Bool = false, cells: [CellUpdate] = [],
    policy: SetBackPolicy = .flag, from device: DeviceID? = device, in lab: inout Lab
  ) throws -> ExchangeResponse {
    let request = ExchangeRequest(cursor: cursor, cells: cells, limit: 10, hasStaged: hasStaged, setBack: setBack)
    let now = lab.now
    let reads = try CloudAcceptance.reads(of: request, from: device, hasQuota: false)
    return try lab.cloud.decide(reading: reads, using: &lab.random) { cloud, random in
      try CloudAcceptance.exchange(
        request, from: device, now: now, setBackPolicy: policy, in: &cloud, using: &random)
    }
  }

  private func recorded(_ lab: Lab) -> DeviceSetBacks { lab.cloud.setBacks(of: Self.device) }

  @Test("a cursor below the reported one is told to the device, and counts once the device confirms it, one time")
  func confirmed() throws {
    var (lab, positions) = try played()
    #expect(try send(positions[3], in: &lab).setBack == nil)
    let told = try send(positions[1], in: &lab).setBack
    #expect(told == SetBack(from: positions[3].seq, to: positions[1].seq))
    #expect(recorded(lab).mark == nil, "the response may never have arrived")
    lab.now = 77
    for _ in 0..<2 { #expect(try send(positions[3], setBack: told, in: &lab).setBack == nil) }
    let mark = DeviceSetBacks.Mark(count: 1, lastMilliseconds: 77, from: positions[3].seq, to: positions[1].seq)
    #expect(recorded(lab) == DeviceSetBacks(mark: mark))
    lab.now = 99
    #expect(try send(positions[3], setBack: told, in: &lab).setBackMark == nil)
    #expect(recorded(lab).mark == mark, "a repeated confirmation isn't another time")
    // Nor is it one if a late request comes between.
    #expect(try send(positions[1], in: &lab).setBack == told)
    try send(positions[3], setBack: told, in: &lab)
    #expect(recorded(lab) == DeviceSetBacks(mark: mark))
    // Another copy is put back.
    let second = try send(positions[2], in: &lab).setBack
    try send(positions[3], setBack: second, in: &lab)
    #expect(recorded(lab).mark?.count == 2 && recorded(lab).mark?.lastMilliseconds == 99)
  }

  @Test("a request that was only late marks nobody, whatever the device sends afterwards")
  func late() throws {
    var (lab, positions) = try played()
    try send(positions[2], in: &lab)
    // Its response reaches nobody.
    #expect(try send(positions[0], in: &lab).setBack != nil)
    for cursor in [positions[2], positions[3], .start, positions[3]] {
      #expect(try send(cursor, in: &lab).setBack == nil)
    }
    #expect(recorded(lab).mark == nil)
  }

  @Test("a store whose response was lost is told again, by what had been reported before")
  func lostResponse() throws {
    var (lab, positions) = try played()
    try send(positions[3], in: &lab)
    let told = SetBack(from: positions[3].seq, to: positions[1].seq)
    for _ in 0..<3 { #expect(try send(positions[1], in: &lab).setBack == told) }
    // It went back further.
    #expect(try send(positions[0], in: &lab).setBack == SetBack(from: positions[3].seq, to: positions[0].seq))
    // What a store confirms that went back again is as old as the store.
    #expect(try send(positions[0], setBack: told, in: &lab).setBack?.to == positions[0].seq)
    #expect(recorded(lab).mark == nil)
    try send(positions[3], setBack: SetBack(from: positions[3].seq, to: positions[0].seq), in: &lab)
    #expect(recorded(lab).mark?.count == 1 && recorded(lab).mark?.to == positions[0].seq)
  }

  @Test("a late request between what the device was told and its confirmation hides nothing")
  func lateBetween() throws {
    var (lab, positions) = try played()
    try send(positions[2], in: &lab)
    let told = try send(positions[0], in: &lab).setBack
    // Of the store as it was before.
    for cursor in [positions[1], positions[3], positions[2]] { try send(cursor, in: &lab) }
    try send(positions[3], setBack: told, in: &lab)
    let mark = recorded(lab).mark
    #expect(mark?.count == 1 && mark?.from == positions[2].seq && mark?.to == positions[0].seq)
  }

  @Test("a start from nothing and a cursor between pages are no sign; what is staged beside a cursor changes nothing")
  func signs() throws {
    var (lab, positions) = try played()
    try send(positions[3], in: &lab)
    var paging = positions[1]
    paging.ahead = Cursor.Mark(seq: positions[3].seq, mark: positions[3].mark)
    #expect(try send(paging, in: &lab).setBack == nil)
    #expect(recorded(lab).isEmpty)
    #expect(try send(positions[1], hasStaged: true, in: &lab).setBack != nil)
    #expect(try send(.start, in: &lab).setBack == nil)
    var (other, cursors) = try played()
    try send(cursors[3], in: &other)
    for cursor in [Cursor.start, cursors[1], cursors[2], cursors[3]] { try send(cursor, in: &other) }
    #expect(recorded(other).isEmpty, "it has started over")
  }

  @Test("a cursor of another history or epoch, and one of a device that never reported, are no sign")
  func otherHistory() throws {
    var (lab, positions) = try played()
    #expect(try send(positions[1], in: &lab).setBack == nil)
    try send(positions[3], in: &lab)
    for change in [\Cursor.mark, \Cursor.epoch] {
      var foreign = positions[1]
      foreign[keyPath: change] += 1
      let response = try send(foreign, in: &lab)
      #expect(response.restart && response.setBack == nil)
    }
    #expect(recorded(lab).isEmpty)
    // A cloud that knows no devices.
    #expect(try send(positions[1], setBack: SetBack(from: 9, to: 1), from: nil, in: &lab).setBack == nil)
  }

  @Test("what the cloud hasn't seen confirms nothing, and numbers that can't be are refused")
  func forged() throws {
    var (lab, positions) = try played()
    try send(positions[3], in: &lab)
    try send(positions[3], setBack: SetBack(from: positions[3].seq, to: 1), in: &lab)
    // A cloud that was restored since may be behind what it had told the device.
    try send(positions[3], setBack: SetBack(from: positions[3].seq + 1_000, to: 5), in: &lab)
    #expect(recorded(lab).isEmpty)
    // Nor does more than it has seen.
    try send(positions[1], in: &lab)
    try send(positions[3], setBack: SetBack(from: positions[3].seq + 1, to: 1), in: &lab)
    #expect(recorded(lab).mark == nil)
    for numbers in [
      SetBack(from: 5, to: 5), SetBack(from: 5, to: 6), SetBack(from: 5, to: 0),
      SetBack(from: Cursor.maximumSeq + 1, to: 5),
    ] {
      #expect(throws: ExchangeError.self) { try send(positions[3], setBack: numbers, in: &lab) }
    }
  }

  @Test("while a marked device is refused, its items aren't taken, everything is sent, and clearing it ends that")
  func refused() throws {
    var (lab, positions) = try played()
    let cell = CellUpdate(key: CellKey(collection: "progress", key: "level"), state: CellState(value: .max(.int(6))))
    try send(positions[3], policy: .refuse, in: &lab)
    let told = try send(positions[1], cells: [cell], policy: .refuse, in: &lab)
    guard case .accepted = told.outcome else {
      Issue.record("\(String(describing: told.outcome)): the request may only have been late")
      return
    }
    #expect(told.setBack != nil && told.setBackMark == nil)
    var second = cell
    second.key.key = "gold"
    let response = try send(positions[3], setBack: told.setBack, cells: [second], policy: .refuse, in: &lab)
    guard case .refused(let refusals) = response.outcome else {
      Issue.record("\(String(describing: response.outcome))")
      return
    }
    #expect(refusals.map(\.reason) == [.setBack] && !response.changes.isEmpty)
    #expect(response.setBackMark == SetBackMark(atMilliseconds: lab.now, isRefused: true))
    #expect(lab.cloud.cell(second.key) == nil)
    #expect(try send(lab.cloud.position(), policy: .ask, in: &lab).setBackMark?.isRefused == false)
    var reads = ReadSet()
    reads.device = Self.device
    try lab.cloud.decide(reading: reads, using: &lab.random) { cloud, _ in
      try CloudAcceptance.clearSetBack(of: Self.device, in: &cloud)
    }
    #expect(recorded(lab).isEmpty)
    let after = try send(lab.cloud.position(), setBack: told.setBack, cells: [second], policy: .refuse, in: &lab)
    #expect(after.setBackMark == nil && lab.cloud.cell(second.key) != nil)
  }
}
