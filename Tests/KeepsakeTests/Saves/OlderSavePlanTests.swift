import Foundation
import KeepsakeReplication
import Testing

@testable import Keepsake

/// Which of an older game's saves are imported, decided without a store.
@Suite struct OlderSavePlanTests {
  typealias Plan = OlderSavePlan
  typealias State = OlderSavePlan.SlotState

  private func candidate(
    _ text: String, at seconds: Double = 100, device: String? = nil, index: Int = 0, slot: String = "main"
  ) -> Plan.Candidate {
    let modified = Date(timeIntervalSince1970: seconds)
    return Plan.Candidate(
      OlderSave(name: "save", bytes: Data(text.utf8), modified: modified, device: device), index: index, slot: slot)
  }

  private func verdict(_ state: State) -> Plan.Verdict { Plan.verdict(on: candidate("a").origin, state) }

  @Test("a save goes to an empty slot, and beside imported ones; not where the player has saved or deleted")
  func slots() {
    #expect(verdict(State()) == .take)
    #expect(verdict(State(heads: [.imported])) == .take)
    #expect(verdict(State(heads: [.imported, .deleted])) == .take)
    #expect(verdict(State(heads: [.saved])) == .skip(.slotInUse))
    #expect(verdict(State(heads: [.imported, .saved])) == .skip(.slotInUse))
    #expect(verdict(State(heads: [.deleted])) == .skip(.deleted))
    #expect(verdict(State(isLocal: true)) == .skip(.localSlot))
  }

  @Test("a save that was imported before is known, whatever its slot has")
  func known() {
    let known: Set = [candidate("a").origin]
    for heads in [[], [.imported], [.saved], [.deleted]] as [[State.Head]] {
      #expect(verdict(State(heads: heads, known: known)) == .known)
      #expect(verdict(State(isLocal: true, heads: heads, known: known)) == .known)
    }
    // The same bytes in another slot are another save.
    #expect(candidate("a", slot: "other").origin != candidate("a").origin)
  }

  @Test("equal bytes are taken once, the newest first, in whatever order the saves are listed")
  func order() {
    let list = [
      candidate("a", at: 10, device: "phone", index: 0), candidate("b", at: 30, device: "phone", index: 1),
      candidate("a", at: 20, device: "tablet", index: 2), candidate("c", at: 30, device: "laptop", index: 3),
    ]
    for candidates in [list, list.reversed(), [list[2], list[0], list[3], list[1]]] {
      let verdicts = Plan(candidates, states: [:]).verdicts
      #expect(verdicts.map(\.candidate.index) == [3, 1, 2, 0])
      #expect(verdicts.map(\.verdict) == [.take, .take, .take, .known])
    }
  }

  @Test("a slot has room for a limited number of saves")
  func room() {
    #expect(State().room == SaveSlots.maximumOlderSaves)
    #expect(State(heads: [.imported, .deleted]).room == SaveSlots.maximumOlderSaves - 2)
    #expect(State(heads: Array(repeating: .imported, count: 100)).room == 0)
  }

  @Test("one save becomes one version, and whatever differs in it another one; all have the root in common")
  func identity() {
    func record(
      _ candidate: Plan.Candidate, _ contents: String = "x", _ metadata: SaveMetadata = SaveMetadata()
    ) -> VersionRecord {
      let hash = ContentHash(of: Data(contents.utf8))
      return OlderSaveIdentity.record(of: candidate, contents: [hash], length: 1, metadata: metadata)
    }
    let own = record(candidate("a", device: "phone", index: 0))
    #expect(own == record(candidate("a", device: "phone", index: 7)))
    let others = [
      record(candidate("b")), record(candidate("a", at: 101)), record(candidate("a", slot: "other")),
      record(candidate("a"), "y"), record(candidate("a"), "x", SaveMetadata(title: "t")),
      record(candidate("a"), "x", SaveMetadata(playtime: 1)), record(candidate("a"), "x", SaveMetadata(progress: 1)),
      record(candidate("a"), "x", SaveMetadata(thumbnail: Data([1]))),
      record(candidate("a"), "x", SaveMetadata(custom: ["device": "phone"])),
      record(candidate("a"), "x", SaveMetadata(custom: ["devicep": "hone"])),
    ]
    #expect(Set(others.map(\.id) + [own.id]).count == others.count + 1)
    #expect(others.filter { $0.slot == "main" }.allSatisfy { $0.covers.contains(OlderSaveIdentity.root(of: "main")) })
    #expect(own.provisional && own.covers.count == 2)
  }

  @Test("times are whole seconds of the years 1970 to 9999, whatever the date is")
  func times() {
    #expect(OlderSaveIdentity.milliseconds(Date(timeIntervalSince1970: 12.9)) == 12_000)
    for seconds in [-1, -.infinity, .nan] as [Double] {
      #expect(OlderSaveIdentity.milliseconds(Date(timeIntervalSince1970: seconds)) == 0)
    }
    for seconds in [1e300, .infinity] as [Double] {
      #expect(OlderSaveIdentity.milliseconds(Date(timeIntervalSince1970: seconds)) == 253_402_300_799_000)
    }
    #expect(OlderSaveIdentity.milliseconds(.distantPast) == 0)
  }
}
