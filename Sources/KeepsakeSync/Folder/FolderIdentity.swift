import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The identity of a folder: `keepsake.json`, created once by the first device.
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
  /// Two devices that each created one before they saw the other's leave two files, after a program has synced both, or
  /// two versions of one. The one with the smaller container identifier is valid, wherever it is, so that all devices
  /// choose the same.
  ///
  /// - Throws: `stillArriving` if one isn't on this device yet: it may be the one that is valid.
  static func read(in layout: FolderLayout, by access: any FolderAccess) throws(TransportFailure) -> FolderIdentity? {
    let (found, isArriving) = try look(in: layout, by: access)
    if isArriving { throw .stillArriving(layout.root) }
    return found
  }

  /// The same, and whether there are some that aren't on this device yet.
  static func look(
    in layout: FolderLayout, by access: any FolderAccess
  ) throws(TransportFailure) -> (identity: FolderIdentity?, isArriving: Bool) {
    guard let names = try access.names(in: layout.root) else { return (nil, false) }
    var found: FolderIdentity?
    var isArriving = false
    // However many others there are, the name itself is always read.
    let others = names.filter { FolderLayout.isIdentity($0) && $0 != FolderLayout.identityName }
    for name in [FolderLayout.identityName] + others.prefix(FolderLimits.identities) {
      let path = "\(layout.root)/\(name)"
      if case .arriving? = try access.item(at: path) {
        access.fetch(path)
        isArriving = true
      }
      let current = try access.read(path, limit: FolderLimits.identityBytes)
      for bytes in try [current].compactMap(\.self) + access.losers(of: path, limit: FolderLimits.identityBytes) {
        // Not ours, or not yet here as a whole.
        guard let identity = decoded(bytes) else { continue }
        guard identity.format <= currentFormat else { throw .newerFolder(layout.root) }
        if found.map({ identity.container < $0.container }) ?? true { found = identity }
      }
    }
    return (found, isArriving)
  }

  private static func decoded(_ bytes: Data) -> FolderIdentity? {
    guard let identity = try? JSONDecoder().decode(Self.self, from: bytes), identity.isWhole else { return nil }
    return identity
  }

  private func encoded() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
    return try encoder.encode(self)
  }

  /// Returns the identity of a folder, created with `container` if it has none. The folder itself has to exist.
  static func readOrMake(
    in layout: FolderLayout, by access: any FolderAccess, _ container: ContainerID
  ) throws -> FolderIdentity {
    if let known = try read(in: layout, by: access) { return known }
    guard case .folder? = try access.item(at: layout.root + "/.") else {
      throw TransportFailure.newFolderMissing(layout.root)
    }
    _ = try access.create(FolderIdentity(container: container).encoded(), at: layout.identity)
    // Whichever device was first, what is there now is valid.
    guard let made = try read(in: layout, by: access) else { throw TransportFailure.folderBlocked(layout.identity) }
    return made
  }

  /// Ends a conflict of two versions of the identity's file: the valid one is what everybody reads from here on.
  static func settle(in layout: FolderLayout, by access: any FolderAccess) throws {
    guard try !access.losers(of: layout.identity, limit: FolderLimits.identityBytes).isEmpty,
      let valid = try read(in: layout, by: access)
    else { return }
    if try access.read(layout.identity, limit: FolderLimits.identityBytes).flatMap(decoded) != valid {
      try access.write(valid.encoded(), to: layout.identity)
    }
    try access.forgetLosers(of: layout.identity)
  }
}
