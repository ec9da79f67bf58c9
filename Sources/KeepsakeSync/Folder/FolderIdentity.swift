import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The identity of a folder of plain files: `keepsake.json`, created once by the first device.
///
/// Without it nothing is read or written: a mount point without its disk looks just like an empty folder.
struct FolderIdentity: Hashable, Sendable, Codable {
  static let currentFormat = 1

  var format: Int
  var container: ContainerID
  /// Distinguishes an intact file from one whose digits were changed.
  var checksum: String

  init(container: ContainerID) {
    format = Self.currentFormat
    self.container = container
    checksum = Self.checksum(format, container)
  }

  private static func checksum(_ format: Int, _ container: ContainerID) -> String {
    ContentHash(of: Data("keepsake folder \(format) \(container)".utf8)).description
  }

  private var isWhole: Bool { checksum == Self.checksum(format, container) }

  /// Returns the identity that is valid in a folder; nil if it has none.
  ///
  /// Two devices that each created one before they saw the other's leave two files, after a program has synced both.
  /// The one with the smaller container identifier is valid, whichever file it is in, so that all devices choose the
  /// same.
  static func read(in layout: FolderLayout) throws(TransportFailure) -> FolderIdentity? {
    let files = PlainFolder()
    guard let names = try files.names(in: layout.root) else { return nil }
    var found: FolderIdentity?
    // However many others there are, the name itself is always read.
    let others = names.filter { FolderLayout.isIdentity($0) && $0 != FolderLayout.identityName }
    for name in [FolderLayout.identityName] + others.prefix(FolderLimits.identities) {
      guard let bytes = try files.read("\(layout.root)/\(name)", limit: FolderLimits.identityBytes),
        let identity = try? JSONDecoder().decode(Self.self, from: bytes), identity.isWhole
      else { continue }  // Not ours, or not yet here as a whole.
      guard identity.format <= currentFormat else { throw .newerFolder(layout.root) }
      if found.map({ identity.container < $0.container }) ?? true { found = identity }
    }
    return found
  }

  /// Returns the identity of a folder, created with `container` if it has none. The folder itself has to exist.
  static func readOrMake(in layout: FolderLayout, _ container: ContainerID) throws -> FolderIdentity {
    if let known = try read(in: layout) { return known }
    let files = PlainFolder()
    guard case .folder? = try files.item(at: layout.root + "/.") else {
      throw TransportFailure.newFolderMissing(layout.root)
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
    _ = try files.create(encoder.encode(FolderIdentity(container: container)), at: layout.identity)
    // Whichever device was first, what is there now is valid.
    guard let made = try read(in: layout) else { throw TransportFailure.folderBlocked(layout.identity) }
    return made
  }
}
