import Foundation
import KeepsakeReplication

/// Whose a folder is, and how that is found out.
enum FolderOwner: Sendable {
  /// A folder of plain files belongs to the container in its `keepsake.json`.
  case identity
  /// A folder in iCloud belongs to the account that is signed in. A device may begin before it has seen what others
  /// did: if it finds no container in `containers`, it puts a name there, and belongs to that one. All names in it
  /// stand for the same player, and every segment is of one container, the same for all players.
  ///
  /// Names arrive before bytes, and no two devices write under the same one. A device whose container isn't among them
  /// is in another account's folder.
  case account

  /// The container that all segments in iCloud are of.
  private static let shared: ContainerID = {
    let words = ContentHash(of: Data("keepsake folder in iCloud".utf8)).bytes.prefix(16).map { UInt64($0) }
    return ContainerID(
      high: words[0..<8].reduce(0) { $0 << 8 | $1 }, low: words[8..<16].reduce(0) { $0 << 8 | $1 })
  }()

  /// Returns the container that a device's segments are of.
  func container(ofSegmentsOf container: ContainerID) -> ContainerID {
    switch self {
    case .identity: container
    case .account: Self.shared
    }
  }

  /// Returns the container that a device belongs to here; nil if the folder has none.
  ///
  /// - Parameter held: The container that it belongs to, which it keeps if that is one of the folder's.
  func container(
    keeping held: ContainerID?, in layout: FolderLayout, by access: any FolderAccess
  ) throws(TransportFailure) -> ContainerID? {
    switch self {
    case .identity: return try FolderIdentity.read(in: layout)?.container
    case .account:
      let names = try Self.names(in: layout, by: access)
      return held.flatMap { names.contains($0) ? $0 : nil } ?? names.min()
    }
  }

  /// Does the same, and makes the folder `container`'s if it has none.
  func container(
    in layout: FolderLayout, by access: any FolderAccess, making container: ContainerID
  ) throws -> ContainerID {
    switch self {
    case .identity: return try FolderIdentity.readOrMake(in: layout, container).container
    case .account:
      if let known = try Self.names(in: layout, by: access).min() { return known }
      try access.makeFolder(layout.containers)
      try access.write(Data("keepsake container \(container)\n".utf8), to: "\(layout.containers)/\(container)")
      return container
    }
  }

  /// Throws unless the folder is here and belongs to the container.
  func require(_ container: ContainerID, in layout: FolderLayout, by access: any FolderAccess) throws(TransportFailure)
  {
    switch self {
    case .identity:
      let found = try FolderIdentity.read(in: layout)?.container
      guard let found else { throw .folderMissing(layout.root) }
      guard found == container else { throw .otherFolder(layout.root, held: container, found: found) }
    case .account:
      let names = try Self.names(in: layout, by: access)
      guard !names.contains(container) else { return }
      guard let other = names.min() else { throw .noAccountFolder(layout.root) }
      throw .otherAccount(layout.root, held: container, found: other)
    }
  }

  /// A release with another format puts its name among the containers first: `format-2`.
  private static func names(
    in layout: FolderLayout, by access: any FolderAccess
  ) throws(TransportFailure) -> Set<ContainerID> {
    let names = try access.names(in: layout.containers) ?? []
    if names.contains(where: { $0.hasPrefix("format-") && $0 != "format-1" }) { throw .newerFolder(layout.root) }
    return Set(names.compactMap { ContainerID($0) })
  }
}
