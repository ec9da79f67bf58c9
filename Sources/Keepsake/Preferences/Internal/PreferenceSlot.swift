import Foundation
import KeepsakeStore

/// The in-memory content of one preference.
enum PreferenceContent: Sendable {
  case absent
  /// The row as it is in the store; nobody has read the preference yet.
  indirect case kept(KeptPreference)
  /// An archive that hasn't been decoded, or not as the requested type.
  case bytes(Data)
  case scalar(PreferenceScalar)
  /// A value of any other type, and its archive. Indirect, because copying the other cases is faster then.
  indirect case typed(any Sendable, Data)
  /// A cell that another program wrote with another rule.
  case foreign

  /// Returns the archive; nil if there is no value. Throws if the row is damaged or was tampered with.
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

  /// The approximate size in bytes. Computed without encoding.
  var size: Int {
    switch self {
    case .absent, .foreign: 0
    case .kept(let row): row.size
    case .bytes(let data), .typed(_, let data): data.count
    case .scalar(let scalar): scalar.size + Self.archiveBytes
    }
  }

  /// The size that an archive adds to a simple value.
  private static let archiveBytes = 64

  /// Whether both are known to be the same without decoding anything; a commit compares more closely.
  func isSame(as other: PreferenceContent) -> Bool {
    switch (self, other) {
    case (.absent, .absent): true
    case (.scalar(let left), .scalar(let right)): left.isSame(as: right)
    case (.bytes(let left), .bytes(let right)), (.bytes(let left), .typed(_, let right)),
      (.typed(_, let left), .bytes(let right)),
      (.typed(_, let left), .typed(_, let right)):
      left == right
    default: false
    }
  }
}

/// The in-memory state of one name.
///
/// Unchecked: all code that reads or changes it holds the lock of its table. The lock also rules out overlapping
/// accesses; checking for them would take a fifth of the time of a set.
final class PreferenceSlot: @unchecked Sendable {
  let name: String
  let isSynced: Bool
  /// The name's mark in `PreferenceIndex`; nil for a name that has none.
  let mark: UInt64?
  @exclusivity(unchecked) var content: PreferenceContent
  /// Increases with each change, so that a value decoded in the meantime doesn't overwrite a newer one.
  @exclusivity(unchecked) var version: UInt64 = 0
  /// What the store has: compared at a commit, so that nothing is written twice. Not used for synced preferences.
  var stored: PreferenceContent
  @exclusivity(unchecked) var isDirty = false
  /// The number of the newest read of the store that was checked for it.
  var reading: UInt64 = 0
  /// The number of commits under way that contain a value of it.
  var inFlight = 0
  @exclusivity(unchecked) var watch: PreferenceWatch?
  /// Whether a key was used with it since the game started.
  @exclusivity(unchecked) var isUsed = false
  /// Whether a key that differs in whether it is synced was used before.
  @exclusivity(unchecked) var isContested = false
  /// The type as which the content can't be read, so that decoding is tried only once.
  @exclusivity(unchecked) var refusedType: ObjectIdentifier?

  init(_ name: String, isSynced: Bool, content: PreferenceContent = .absent) {
    (self.name, self.isSynced, self.content, stored) = (name, isSynced, content, content)
    mark = PreferenceIndex.mark(of: name, isSynced)
  }

  /// Replaces a number by another if that needs no checks and no notification; otherwise returns false.
  func replace(_ scalar: PreferenceScalar) -> Bool {
    // A dirty slot was set since the last commit: its key is used, its name is valid, and its commit is scheduled.
    guard isDirty, !isContested, case .scalar(let old) = content else { return false }
    guard old.isAsLarge(as: scalar), !old.isSame(as: scalar), watch?.isTracked != true else { return false }
    content = .scalar(scalar)
    version &+= 1
    refusedType = nil
    return true
  }
}
