import KeepsakeReplication
import KeepsakeSimulation
import Testing

@Suite("A store that is set back to before what the cloud remembers")
struct ForgottenMarkTests {
  private static let hour: Int64 = 3_600_000

  private func prune(_ lab: inout Lab) throws {
    var rules = PruningRules()
    (rules.windowMilliseconds, rules.rememberedMilliseconds) = (Self.hour, 2 * Self.hour)
    (rules.stepMilliseconds, rules.history) = (1, nil)
    let now = lab.now
    var place: CloudAcceptance.PruningStep.Place? = .start
    while let from = place {
      place = try lab.cloud.decide(reading: ReadSet(), using: &lab.random) { cloud, _ in
        try CloudAcceptance.prune(from: from, under: rules, now: now, in: &cloud).next
      }
    }
  }

  /// A device whose store was set back, and another one that has gone on meanwhile; the cloud has forgotten the mark.
  private func setBack() throws -> Lab {
    var lab = try Lab(devices: 2)
    lab.now = 1_700_000_000_000
    try lab.save(0, "first", over: .everyHead)
    try lab.settle(0)
    try lab.settle(1)
    // The mark of a newest change is never forgotten.
    let old = lab.devices[0].storage
    for number in 0..<12 {
      lab.now += Self.hour
      try lab.save(1, "save \(number)", over: .everyHead)
      for index in [1, 0] { try lab.settle(index) }
      try prune(&lab)
    }
    let cursor = old.facts().cursor
    #expect(cursor.seq > 0 && lab.cloud.mark(of: cursor.seq) == nil)
    lab.devices[0] = try LabDevice(writer: 3)
    lab.devices[0].storage = old
    try DeviceCommit.opened(in: &lab.devices[0].storage, using: &lab.random)
    lab.requests = []
    return lab
  }

  @Test("it fetches everything anew and offers only what was made since; what nobody remembers is a conflict at most")
  func fetchesAnew() throws {
    var lab = try setBack()
    let made = try lab.save(0, "made offline", slot: "other", over: .everyHead)
    try lab.settle(0)
    #expect(lab.requests[0].cursor.seq > 0 && lab.requests[1].cursor.seq == 0)
    for request in lab.requests { #expect(request.versions.allSatisfy { $0.id == made.id }) }
    #expect(lab.cloud.heads(of: "other") == [made.id] && lab.cloud.heads(of: "main").count == 1)
    #expect(lab.devices[0].storage.heads(of: "other") == [made.id])
    // Which save replaced the one that it was set back to isn't known any more.
    #expect(Set(lab.devices[0].storage.heads(of: "main")).isSuperset(of: lab.cloud.heads(of: "main")))
    let merged = try lab.save(0, "merged", over: .everyHead)
    for index in [0, 1] {
      try lab.settle(index)
      #expect(lab.devices[index].storage.heads(of: "main") == [merged.id])
      #expect(lab.devices[index].storage.heads(of: "other") == [made.id])
    }
  }

  @Test("it is told with the restart that it went back, and marked when it confirms that")
  func marked() throws {
    var lab = try setBack()
    let (low, reached) = (lab.devices[0].storage.facts().cursor.seq, lab.cloud.reached()[Lab.id(0)] ?? 0)
    for _ in 0..<2 { try lab.settle(0) }
    let mark = lab.cloud.setBacks(of: Lab.id(0)).mark
    #expect(mark?.count == 1 && mark?.from == reached && mark?.to == low && reached > low)
  }

  @Test("a device that the cloud has never seen so far begins a new epoch, as after a restore of the cloud")
  func unknownDevice() throws {
    var lab = try setBack()
    let cursor = lab.devices[0].storage.facts().cursor
    let request = ExchangeRequest(cursor: cursor, limit: 9)
    let (known, unknown) = (Lab.id(0), Lab.id(7))
    func answer(_ device: DeviceID) throws -> ExchangeResponse {
      let reads = try CloudAcceptance.reads(of: request, from: device, hasQuota: false)
      var (cloud, random) = (lab.cloud, lab.random)
      return try cloud.decide(reading: reads, using: &random) { cloud, random in
        try CloudAcceptance.exchange(request, from: device, now: lab.now, in: &cloud, using: &random)
      }
    }
    let (own, other) = try (answer(known), answer(unknown))
    #expect(own.restart && own.isBehind)
    #expect(other.restart && !other.isBehind)
    // Set back again before it reported what it has fetched anew.
    lab.cloud.setReached(cursor.seq, by: known)
    #expect(try answer(known).isBehind)
    lab.cloud.setReached(cursor.seq - 1, by: known)
    #expect(try !answer(known).isBehind)
  }
}
