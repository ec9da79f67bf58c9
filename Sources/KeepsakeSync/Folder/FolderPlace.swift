package import Foundation
package import KeepsakePlatform
package import KeepsakeReplication

/// A folder that the player's devices share, and how its files are reached.
package struct FolderPlace: Sendable {
  package let url: URL
  let access: any FolderAccess

  init(_ url: URL, by access: any FolderAccess) { (self.url, self.access) = (url, access) }

  /// A folder of plain files, which a program may sync.
  package static func plain(_ url: URL) -> FolderPlace { FolderPlace(url, by: PlainFolder()) }

  /// The folder of that name in a container of iCloud, created if it isn't there. Blocks; the first time for seconds.
  ///
  /// - Parameters:
  ///   - name: The folder's name in the container, outside of what the player sees among their files.
  ///   - container: The container's identifier; nil for the app's first one.
  ///   - ubiquity: What reaches iCloud; nil on systems without it.
  /// - Throws: `unreachable` if there is no iCloud at present.
  package static func inICloud(
    _ name: String, container: String?, by ubiquity: Ubiquity? = .system
  ) throws(TransportFailure) -> FolderPlace {
    guard let ubiquity, let root = ubiquity.container(container) else { throw .iCloudOff }
    let url = root.appendingPathComponent(name, isDirectory: true)
    let access = ICloudFolder(ubiquity)
    do {
      try access.makeFolder(FolderLayout(url).root)
    } catch {
      throw TransportFailure(inFolder: error)
    }
    return FolderPlace(url, by: access)
  }
}
