#if Cloud
import Foundation
import KeepsakeReplication

/// Everything that a cloud keeps of a player, as lines of JSON. Contents are only named; their bytes are fetched one by
/// one.
enum PlayerExport {
  /// The number of lines in a page, which is read in one go.
  static let pageLines = 1_000
  /// The number of changes in a page: each may have 256 KiB, and more.
  static let pageChanges = 16
  /// The number of rows of packed decisions that make about as many lines.
  static let pageRows = pageLines / PackedDecisions.maximumEntries

  /// Where a page begins.
  enum Position: Sendable, Hashable {
    static let start = Position.changes(after: 0)
    case changes(after: UInt64)
    case contents(after: ContentHash?)
    case decisions(after: OperationID?)
    case packed(after: PackedRow?)
    case claims(after: String?)
    case orders(after: UInt64)
    case bank
  }

  /// A row of packed decisions.
  struct PackedRow: Sendable, Hashable {
    var level: Int64
    var first: OperationID
  }

  struct Page: Sendable {
    var lines: [Line]
    /// Nil after the last.
    var next: Position?
  }

  /// One line: an object whose only key is its kind.
  struct Line: Sendable, Encodable {
    struct Device: Sendable, Encodable {
      var device: DeviceID
      var name: String
      var createdMilliseconds: Int64
      var seenMilliseconds: Int64
      /// Set if the device's store went back to an older state.
      var setBack: DeviceSetBacks.Mark?
    }
    struct RecoveryCode: Sendable, Encodable {
      var createdMilliseconds: Int64
    }
    /// An identity, of which only a hash is kept.
    struct Identity: Sendable, Encodable {
      var issuer: String
      var createdMilliseconds: Int64
    }
    /// A shared container that the player has in this game, or had: what is in it is exported with a token of its own.
    struct Shared: Sendable, Encodable {
      /// The container's id, of all players.
      var share: String
      var container: ContainerID
      var player: PlayerID
    }
    struct Content: Sendable, Encodable {
      var hash: ContentHash
      var length: Int
      var base: ContentHash?
      var frameBytes: Int
    }
    struct Operation: Sendable, Encodable {
      var operation: WalletOperation
      var chain: ChainID
      var verdict: WalletDecision.Verdict
    }
    struct Claim: Sendable, Encodable {
      var key: String
    }
    struct End: Sendable, Encodable {
      var lines: Int
    }
    var device: Device?
    /// The player's recovery code, of which only the hash is kept.
    var recoveryCode: RecoveryCode?
    var identity: Identity?
    var shared: Shared?
    var cell: CellUpdate?
    var version: VersionRecord?
    var content: Content?
    var operation: Operation?
    /// About an operation whose details aren't kept any more.
    var decision: WalletDecision?
    /// A claim that was paid.
    var claim: Claim?
    /// One of the bank's own operations.
    var order: NumberedOrder?
    var balances: [String: Int64]?
    /// With the balances, if the player owes anything.
    var owed: [String: Int64]?
    /// The last line, with the number of lines before it.
    var end: End?

    init(_ record: DeviceRecord) {
      device = Device(
        device: record.identity.device, name: record.name ?? "", createdMilliseconds: record.createdMilliseconds,
        seenMilliseconds: record.seenMilliseconds, setBack: record.setBack)
    }

    init(_ change: CloudChange) {
      switch change.item {
      case .cell(let update): cell = update
      case .version(let record): version = record
      }
    }

    init(recoveryCode created: Int64) { recoveryCode = RecoveryCode(createdMilliseconds: created) }
    init(_ linked: LinkedIdentity) {
      identity = Identity(issuer: linked.issuer, createdMilliseconds: linked.createdMilliseconds)
    }
    init(_ shared: SharedContainer) {
      self.shared = Shared(share: shared.share.text, container: shared.container, player: shared.player)
    }
    init(content: Content) { self.content = content }
    init(operation: Operation) { self.operation = operation }
    init(decision: WalletDecision) { self.decision = decision }
    init(claim key: String) { claim = Claim(key: key) }
    init(order: NumberedOrder) { self.order = order }
    init(balances: [String: Int64], owed: [String: Int64]?) { (self.balances, self.owed) = (balances, owed) }
    private init(end: End) { self.end = end }

    static func end(lines: Int) -> Line { Line(end: End(lines: lines)) }

    func json() throws -> Data {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return try encoder.encode(self)
    }
  }
}
#endif
