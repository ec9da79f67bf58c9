import Foundation
import KeepsakeReplication
import KeepsakeSimulation

/// Devices that save in one slot, are away, lose responses and are set back to backups, and a cloud that prunes
/// meanwhile. Each device, and an observer, keeps all records that it ever got.
struct PruningWorld {
  struct Player {
    var cursor = Cursor.start
    var records: [VersionID: VersionRecord] = [:]
    var covered: Set<VersionID> = []
    var unsent: [VersionRecord] = []

    var heads: [VersionID] { records.keys.filter { !covered.contains($0) }.sorted() }

    mutating func add(_ record: VersionRecord) {
      records[record.id] = records[record.id]?.joined(with: record) ?? record
      covered.formUnion(record.covers)
    }
  }

  static let hour: Int64 = 3_600_000
  var random: SeededGenerator
  var cloud = MemoryContainer(epoch: 1)
  var players: [Player]
  /// Everything that the cloud ever accepted.
  var accepted: [VersionID: VersionRecord] = [:]
  var now: Int64 = 1_700_000_000_000
  var rules = PruningRules()
  var pruned = 0
  var forgotten = 0
  private var next: UInt64 = 1

  init(seed: UInt64, players count: Int) {
    random = SeededGenerator(seed: seed)
    players = Array(repeating: Player(), count: count)
    rules.windowMilliseconds = Int64.random(in: 0...48, using: &random) * Self.hour
    rules.rememberedMilliseconds = rules.windowMilliseconds + Int64.random(in: 24...200, using: &random) * Self.hour
    rules.stepMilliseconds = Self.hour
    rules.history = Bool.random(using: &random) ? HistoryRules(newest: 2, hourly: 1, daily: 2, weekly: 1) : nil
  }

  static func id(_ index: Int) -> DeviceID { DeviceID(high: 0, low: UInt64(index + 1)) }

  /// The game saves over what the player sees, or over one side of it.
  mutating func save(_ index: Int) {
    var parents = players[index].heads
    if parents.count > 1, random.once(in: 3) { parents = [parents.randomElement(using: &random) ?? parents[0]] }
    var covers = Set(parents)
    for unsent in players[index].unsent where covers.contains(unsent.id) { covers.formUnion(unsent.covers) }
    let record = VersionRecord(
      id: VersionID(high: 7, low: next), slot: "main", covers: covers.sorted(),
      contents: [], length: 0, savedAtMilliseconds: now, writer: WriterID(UInt64(index)), provisional: false)
    next += 1
    players[index].add(record)
    players[index].unsent.append(record)
  }

  /// - Parameters:
  ///   - isLost: Whether the response is lost.
  ///   - pages: After how many exchanges the device goes offline.
  /// - Returns: Whether the device had to start over.
  @discardableResult
  mutating func sync(_ index: Int, losingResponse isLost: Bool = false, pages: Int = 50) throws -> Bool {
    var hasStartedOver = false
    for _ in 0..<pages {
      let player = players[index]
      let request = ExchangeRequest(
        cursor: player.cursor, versions: player.cursor.ahead == nil ? player.unsent : [], limit: 40)
      let time = now
      let reads = try CloudAcceptance.reads(of: request, from: Self.id(index), hasQuota: false)
      let response = try cloud.decide(reading: reads, using: &random) { cloud, random in
        try cloud.recordVisit(
          WriteSet.Visit(player: PlayerID(high: 0, low: 1), app: Data(), milliseconds: time), of: Self.id(index),
          every: 0)
        return try CloudAcceptance.exchange(request, from: Self.id(index), now: time, in: &cloud, using: &random)
      }
      if case .accepted? = response.outcome {
        for record in request.versions { accepted[record.id] = accepted[record.id]?.joined(with: record) ?? record }
      }
      if isLost { return hasStartedOver }
      players[index].cursor = response.cursor
      if response.restart {
        hasStartedOver = true
        continue
      }
      for case .version(let record) in response.changes.map(\.item) { players[index].add(record) }
      if case .accepted? = response.outcome { players[index].unsent = [] }
      if !response.more { return hasStartedOver }
    }
    return hasStartedOver
  }

  mutating func prune() throws {
    var place: CloudAcceptance.PruningStep.Place? = .start
    while let from = place {
      let (rules, now) = (rules, now)
      let step = try cloud.decide(reading: ReadSet(), using: &random) { cloud, _ in
        try CloudAcceptance.prune(from: from, under: rules, now: now, in: &cloud)
      }
      pruned += step.versions
      forgotten += step.ids
      place = step.next
    }
  }

  /// What the cloud has of a version.
  func kept(_ id: VersionID) -> VersionRecord? { cloud.version(id)?.record }
  /// What was ever known of it.
  func whole(_ id: VersionID) -> VersionRecord? { accepted[id] }
}
