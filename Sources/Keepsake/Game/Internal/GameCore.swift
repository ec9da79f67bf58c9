import Foundation
import KeepsakeReplication
import KeepsakeStore

/// What the parts of a game's data share.
final class GameCore: Sendable {
  let store: GameStore
  let environment: GameEnvironment
  /// Where this device keeps its credentials.
  let credentials: CredentialStorage
  let events: GameEvents
  let commits: CommitPipeline
  let seen = SeenByCache()
  /// The game to which this shared data belongs; nil for a game's own data.
  let game: GameReference?
  private let link = CloudReference()

  /// The link to the cloud; a link that does nothing while there is none. Referenced weakly.
  var cloud: any CloudLink {
    get { link.cloud }
    set { link.cloud = newValue }
  }

  var slotParents: SlotParents { commits.slotParents }

  var now: Date { events.now }

  init(store: Store, environment: GameEnvironment, credentials: CredentialStorage, game: GameReference? = nil) {
    self.store = GameStore(base: store)
    self.environment = environment
    self.credentials = credentials
    self.game = game
    events = GameEvents(environment: environment)
    commits = CommitPipeline(store: self.store, environment: environment, events: events, cloud: link)
    store.onIncident { [weak events] in events?.report($0) }
    for incident in store.incidents { events.report(incident) }
    store.sealFindings.observe { [weak events] in events?.report($0) }
  }

  /// Records the slots' current heads as shown, because the game may replace them without loading them. Called at
  /// opening.
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

  /// Runs `body`. Returns nil if it fails because the store is closed, so that a loop over changes ends.
  func whileOpen<Value>(_ body: () throws -> Value) throws -> Value? {
    do {
      return try body()
    } catch {
      guard store.isClosed else { throw error }
      return nil
    }
  }

  /// Runs `body` and translates the errors of lower layers into errors of the public API.
  func translating<Value>(_ body: () throws -> Value) throws -> Value {
    try GameDataError.translating(body)
  }
}
