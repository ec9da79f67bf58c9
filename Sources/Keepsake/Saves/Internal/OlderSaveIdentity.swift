import Foundation
import KeepsakeReplication

/// The identifiers of what is made of an older game's saves: derived from what they identify, so that two devices that
/// import the same save, neither knowing of the other, make the same version.
///
/// The version replaces two others that no device ever had. The first is the older save itself (`origin`). A device on
/// which that is replaced has imported it before. The second is all that the older game had in the slot (`root`). It is
/// the common ancestor of several imported saves, so that their times can be compared.
enum OlderSaveIdentity {
  /// Under this name all imported saves are made, because no device may have one of its own.
  static let writer = WriterID(digest(["older game's writer"]).firstWord)

  /// The latest time of an imported save: the end of the year 9999.
  private static let latestSecond = 253_402_300_799.0

  static func origin(of bytes: Data, in slot: String) -> VersionID {
    VersionID(digest(["older save", slot, ContentHash(of: bytes).description]))
  }

  static func root(of slot: String) -> VersionID { VersionID(digest(["older game", slot])) }

  /// Returns the time in whole seconds, because systems round times of files differently; limited to the years 1970 to
  /// 9999.
  static func milliseconds(_ date: Date) -> Int64 {
    let seconds = date.timeIntervalSince1970
    guard seconds > 0 else { return 0 }  // Also if it isn't a number.
    return Int64(min(seconds, latestSecond)) * 1000
  }

  /// Returns the version that an older save becomes.
  ///
  /// Its identifier depends on all that never changes of a version, so that one identifier is never that of two
  /// different versions: another release of the game may encode the same older save differently.
  static func record(
    of candidate: OlderSavePlan.Candidate, contents: [ContentHash], length: Int, metadata: SaveMetadata
  ) -> VersionRecord {
    var fields = ["imported save", candidate.slot, candidate.origin.description, "\(candidate.savedAtMilliseconds)"]
    fields += ["\(length)", "\(contents.count)"] + contents.map(\.description)
    fields += [metadata.playtime, metadata.progress].map { $0.map { "\($0.bitPattern)" } ?? "none" }
    fields += metadata.title.map { ["title", $0] } ?? ["none"]
    fields += metadata.thumbnail.map { ["thumbnail", ContentHash(of: $0).description] } ?? ["none"]
    for (name, value) in metadata.custom.sorted(by: { $0.key < $1.key }) { fields += [name, value] }
    return VersionRecord(
      id: VersionID(digest(fields)), slot: candidate.slot,
      covers: [candidate.origin, root(of: candidate.slot)].sorted(), contents: contents, length: length,
      metadata: metadata, savedAtMilliseconds: candidate.savedAtMilliseconds,
      writer: writer, provisional: true)
  }

  /// Each field is preceded by its length, so that no two lists hash the same bytes.
  private static func digest(_ fields: [String]) -> ContentHash {
    var bytes = Data()
    for field in fields { bytes += Data("\(field.utf8.count)/\(field)".utf8) }
    return ContentHash(of: bytes)
  }
}

extension VersionID {
  /// The first half of a hash.
  fileprivate init(_ hash: ContentHash) {
    let words = hash.bytes.withUnsafeBytes { bytes in
      (
        UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
        UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      )
    }
    self.init(high: words.0, low: words.1)
  }
}
