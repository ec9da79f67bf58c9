import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

@testable import KeepsakeStore

/// A slot that leaves the cloud and comes back, with the engine and a cloud in memory.
@Suite struct SlotMoveTests {
  private let folder: TemporaryFolder
  private let store: Store
  private var engine = DeviceEngine()
  private var cloud = MemoryContainer(epoch: 1)
  private var random = SeededGenerator(seed: 5)

  init() throws {
    folder = try TemporaryFolder()
    store = try Store.open(at: folder.store)
    try store.write { transaction in
      var facts = try transaction.facts()
      facts.container = ContainerID(high: 0, low: 1)
      try transaction.setFacts(facts)
    }
  }

  @Test("a save that was being sent when its slot left the cloud is replaced by the saves after the slot came back")
  mutating func inFlightWhenLeaving() throws {
    defer { try? store.close() }
    try settle(.started)
    _ = try store.submit(GameCommit(1)).wait()
    let request = try step(.committed).first { if case .exchange = $0 { true } else { false } }
    let sent = try #require(request)
    _ = try store.submit(SlotMove(of: "main", .leave(removing: false), now: 2)).wait()
    let answer = try respond(to: sent)
    try settle(#require(answer))
    #expect(cloud.heads(of: "main") == [id(1)])
    _ = try store.submit(GameCommit(2)).wait()
    _ = try store.submit(SlotMove(of: "main", .comeBack, now: 3)).wait()
    _ = try store.submit(GameCommit(3)).wait()
    try settle(.committed)
    #expect(cloud.heads(of: "main") == [id(3)])
    #expect(try store.read { try $0.heads(of: "main") } == [id(3)])
  }

  private mutating func step(_ event: EngineEvent) throws -> [EngineEffect] {
    var (engine, random) = (engine, random)
    let effects = try store.write { try engine.step(event, now: 1, in: &$0, using: &random) }
    (self.engine, self.random) = (engine, random)
    return effects
  }

  private mutating func respond(to effect: EngineEffect) throws -> EngineEvent? {
    guard case .exchange(let number, let request) = effect else { return nil }
    return .answered(
      request: number, try CloudAcceptance.exchange(request, now: 1, in: &cloud, using: &random))
  }

  /// Delivers every request and response until nothing more is in flight.
  private mutating func settle(_ event: EngineEvent) throws {
    var events = [event]
    while !events.isEmpty {
      for effect in try step(events.removeFirst()) {
        if let event = try respond(to: effect) { events.append(event) }
      }
    }
  }
}
