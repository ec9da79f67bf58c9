import Foundation
import KeepsakeReplication
import KeepsakeStore

/// What the parts of a game's data share.
final class GameCore: Sendable {
  let store: Store
  let environment: GameEnvironment
  let events: GameEvents
  let commits: CommitPipeline
  let seen = SeenByCache()
  private let link = CloudReference()

  /// The cloud; one that does nothing while there is none. It isn't kept alive by this.
  var cloud: any CloudLink {
    get { link.cloud }
    set { link.cloud = newValue }
  }

  var slotParents: SlotParents { commits.slotParents }

  var now: Date { events.now }

  init(store: Store, environment: GameEnvironment) {
    self.store = store
    self.environment = environment
    events = GameEvents(environment: environment)
    commits = CommitPipeline(store: store, environment: environment, events: events, cloud: link)
    store.onIncident { [weak events] in events?.report($0) }
    for incident in store.incidents { events.report(incident) }
    store.sealFindings.observe { [weak events] in events?.report($0) }
  }

  /// What stands in the slots as the game begins is what it may replace without loading it.
  func showSlots() throws {
    slotParents.show(
      try store.read { transaction in
        let local = try transaction.localSlots()
        var shown: [String: [VersionID]] = [:]
        let notDownloaded = Set(try transaction.notDownloadedVersions())
        for (key, heads) in try transaction.headsOfAllSlots() where key.isLocal == local.contains(key.slot) {
          shown[key.slot] = heads.filter { !notDownloaded.contains($0) }
        }
        return shown
      })
  }

  /// Nil where the store is closed: a loop over what changes ends then.
  func whileOpen<Value>(_ body: () throws -> Value) throws -> Value? {
    do {
      return try body()
    } catch {
      guard store.isClosed else { throw error }
      return nil
    }
  }

  /// Runs `body` and turns what the floors below throw for themselves into errors that a game can see.
  func translating<Value>(_ body: () throws -> Value) throws -> Value {
    try GameDataError.translating(body)
  }
}
