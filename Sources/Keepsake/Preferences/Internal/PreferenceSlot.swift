import Foundation
import KeepsakeStore

/// What memory holds of one preference.
enum PreferenceContent: Sendable {
  case absent
  /// As its row stands in the store; nobody has asked for it yet.
  case kept(KeptPreference)
  /// An archive that wasn't decoded, or not as the type asked for.
  case bytes(Data)
  case scalar(PreferenceScalar)
  /// A value of any other type, and the archive of it.
  case typed(any Sendable, Data)
  /// A cell that another program wrote by another rule.
  case foreign

  /// The archive; nil if there is no value. Throws for a row that is damaged or by other hands.
  func archive() throws -> Data? {
    switch self {
    case .absent, .foreign: nil
    case .kept(let row): try row.bytes()
    case .bytes(let data), .typed(_, let data): data
    case .scalar(let scalar): try scalar.encoded()
    }
  }

  var isPresent: Bool {
    switch self {
    case .absent, .foreign: false
    default: true
    }
  }

  /// Bytes that it takes, roughly. Costs nothing.
  var size: Int {
    switch self {
    case .absent, .foreign: 0
    case .kept(let row): row.size
    case .bytes(let data), .typed(_, let data): data.count
    case .scalar(let scalar): scalar.size + Self.archiveBytes
    }
  }

  /// What an archive takes around a simple value.
  private static let archiveBytes = 64

  /// Whether both are known to be the same without decoding anything; a commit looks closer.
  func isSame(as other: PreferenceContent) -> Bool {
    switch (self, other) {
    case (.absent, .absent): true
    case (.scalar(let left), .scalar(let right)): left.isSame(as: right)
    case (.bytes(let left), .bytes(let right)), (.bytes(let left), .typed(_, let right)), (.typed(_, let left), .bytes(let right)),
      (.typed(_, let left), .typed(_, let right)):
      left == right
    default: false
    }
  }
}

/// One name's place in memory. Unchecked: whoever reads or changes it holds the lock of its table, which also rules out overlapping uses;
/// looking for those would take a fifth of the time of a set.
final class PreferenceSlot: @unchecked Sendable {
  let name: String
  let isSynced: Bool
  /// The name's in `PreferenceIndex`; nil for one that has none.
  let mark: UInt64?
  @exclusivity(unchecked) var content: PreferenceContent
  /// Rises with each change, so that what was decoded meanwhile isn't put over a newer value.
  @exclusivity(unchecked) var version: UInt64 = 0
  /// What the store has: compared with at a commit, so that nothing is written twice. Of no use for synced ones.
  var stored: PreferenceContent
  @exclusivity(unchecked) var isDirty = false
  /// The newest reading of the store that was looked at for it.
  var reading: UInt64 = 0
  /// Commits under way that hold a value of it.
  var inFlight = 0
  @exclusivity(unchecked) var watch: PreferenceWatch?
  /// A key was used with it since the game began.
  @exclusivity(unchecked) var isUsed = false
  /// A key that says otherwise about being synced was used before.
  @exclusivity(unchecked) var isContested = false
  /// The type as which the content can't be read, so that it is tried once.
  @exclusivity(unchecked) var refusedType: ObjectIdentifier?

  init(_ name: String, isSynced: Bool, content: PreferenceContent = .absent) {
    (self.name, self.isSynced, self.content, stored) = (name, isSynced, content, content)
    mark = PreferenceIndex.mark(of: name, isSynced)
  }
}
