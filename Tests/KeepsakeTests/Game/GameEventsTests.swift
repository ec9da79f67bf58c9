import Foundation
import TestSupport
import Testing

@testable import Keepsake

/// The incidents and changes that a game receives, and what is kept until it takes them.
@Suite struct GameEventsTests {
  private let events = GameEvents(environment: .system)

  private func incident(_ number: Int) -> Incident {
    Incident(kind: .damagedVersion, message: "\(number)", date: Date(timeIntervalSince1970: Double(number)))
  }

  @Test("an incident that is reported again is kept and emitted once; of many incidents, the newest are kept")
  func incidents() {
    for number in [0, 1, 0] { events.report(incident(number)) }
    #expect(events.incidents == [incident(0), incident(1)])
    #expect(events.takeChanges() == [.incident(incident(0)), .incident(incident(1))])
    let count = GameEvents.maximumIncidents + 5
    for number in 2..<count { events.report(incident(number)) }
    #expect(events.incidents == (5..<count).map(incident))
  }

  @Test("each change is taken once, oldest first; of many changes, the newest are kept")
  func changes() {
    let count = GameEvents.maximumUntaken + 5
    for number in 0..<count { events.emit(.slots(["\(number)"])) }
    #expect(events.takeChanges() == (5..<count).map { .slots(["\($0)"]) })
    #expect(events.takeChanges().isEmpty)
  }

  @Test(
    "a change of slots is also reported as one of their status, and all streams end with the game's data", .hangLimit)
  func streams() async {
    let (changes, slots, statuses) = (events.changes.stream(), events.slotTicks.stream(), events.statusTicks.stream())
    events.slotsDidChange()
    events.finish()
    var counts = [0, 0, 0]
    for await _ in changes { counts[0] += 1 }
    for await _ in slots { counts[1] += 1 }
    for await _ in statuses { counts[2] += 1 }
    #expect(counts == [0, 1, 1])
  }
}
