package import Foundation
package import KeepsakePlatform
package import KeepsakeReplication

/// A folder that the player's devices share, whose it is, and how its files are reached.
package struct FolderPlace: Sendable {
  package let url: URL
  let access: any FolderAccess
  let owner: FolderOwner
  /// How often names, sizes and dates are looked at, at least.
  var lookMilliseconds: Int64 { owner == .account ? 5_000 : 0 }

  init(_ url: URL, by access: any FolderAccess, of owner: FolderOwner) {
    (self.url, self.access, self.owner) = (url, access, owner)
  }

  /// A folder of plain files, which a program may sync.
  package static func plain(_ url: URL) -> FolderPlace { FolderPlace(url, by: PlainFolder(), of: .identity) }

  /// The folder of that name in a container of iCloud, created if it isn't there. Blocks; the first time for seconds.
  ///
  /// - Parameters:
  ///   - name: The folder's name in the container, outside of what the player sees among their files: letters, digits,
  ///     spaces, `-` and `_`, 100 at most.
  ///   - container: The container's identifier; nil for the app's first one.
  ///   - ubiquity: What reaches iCloud; nil on systems without it.
  /// - Throws: `unreachable` if there is no iCloud at present; `unauthorized` if the name can't be used.
  package static func inICloud(
    _ name: String, container: String?, by ubiquity: Ubiquity? = .system
  ) throws(TransportFailure) -> FolderPlace {
    // No way out of the container, and nothing that iCloud leaves out, as `.nosync`.
    guard (1...100).contains(name.utf8.count), name.first != " ", name.last != " ",
      name.utf8.allSatisfy({ isUsable($0) })
    else { throw .unusableName(name) }
    guard let ubiquity, let root = ubiquity.container(container) else { throw .iCloudOff }
    let url = root.appendingPathComponent(name, isDirectory: true)
    let access = ICloudFolder(ubiquity)
    do {
      // What is above the container is none of the game's business.
      try PlainFolder().makeFolder(FolderLayout(url).root)
    } catch {
      throw TransportFailure(inFolder: error)
    }
    return FolderPlace(url, by: access, of: .account)
  }

  private static func isUsable(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: " "), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// Returns which container the folder holds. A folder that has none becomes `container`, if one is given. Blocks.
  ///
  /// - Parameters:
  ///   - held: The container that the device belongs to. It is kept if it is one of several that the folder holds.
  ///   - container: What the folder becomes.
  /// - Throws: `unreachable` if the folder isn't there, or has no container and is given none.
  package func container(
    keeping held: ContainerID? = nil, making container: ContainerID?
  ) throws(TransportFailure) -> ContainerID {
    let layout = FolderLayout(url)
    do {
      if let container { return try owner.container(in: layout, by: access, making: container) }
      guard let known = try owner.container(keeping: held, in: layout, by: access) else {
        throw owner == .account ? TransportFailure.noAccountFolder(layout.root) : .folderMissing(layout.root)
      }
      return known
    } catch {
      throw TransportFailure(inFolder: error)
    }
  }
}
