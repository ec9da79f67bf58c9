package import Foundation

/// What the folders of iCloud need besides the calls of plain files, as closures, so that a test can stand in for
/// iCloud.
package struct Ubiquity: Sendable {
  /// What a program is about to do with an item.
  package enum Purpose: Sendable {
    case read, replace, delete
  }

  /// Returns the folder of a container, by its identifier or, for nil, of the app's first one. Nil if the player isn't
  /// signed in to iCloud, or has turned it off for the app. The first call may take seconds.
  package var container: @Sendable (_ identifier: String?) -> URL?
  /// Returns whether the bytes of a file, or the names in a folder, are on this device. True for what isn't in iCloud.
  /// Doesn't wait for the network.
  package var isHere: @Sendable (URL) throws -> Bool
  /// Asks for what isn't here of an item. It arrives later, if at all.
  package var fetch: @Sendable (URL) throws -> Void
  /// Calls the closure once while nobody else, and not iCloud either, changes the item; with where the item is then.
  package var coordinate: @Sendable (Purpose, URL, (URL) throws -> Void) throws -> Void
  /// Creates a folder that isn't in iCloud, from which a file can be renamed to the item. The caller removes it.
  package var temporaryFolder: @Sendable (_ item: URL) throws -> URL

  package init(
    container: @escaping @Sendable (_ identifier: String?) -> URL?, isHere: @escaping @Sendable (URL) throws -> Bool,
    fetch: @escaping @Sendable (URL) throws -> Void,
    coordinate: @escaping @Sendable (Purpose, URL, (URL) throws -> Void) throws -> Void,
    temporaryFolder: @escaping @Sendable (_ item: URL) throws -> URL
  ) {
    self.container = container
    self.isHere = isHere
    self.fetch = fetch
    self.coordinate = coordinate
    self.temporaryFolder = temporaryFolder
  }

  /// Nil on systems without iCloud.
  package static var system: Ubiquity? {
    #if canImport(Darwin)
    Ubiquity(
      container: { FileManager.default.url(forUbiquityContainerIdentifier: $0) },
      isHere: { try isHere($0) },
      fetch: { try FileManager.default.startDownloadingUbiquitousItem(at: $0) },
      coordinate: { try coordinate($0, $1, $2) },
      temporaryFolder: { item in
        try FileManager.default.url(
          for: .itemReplacementDirectory, in: .userDomainMask, appropriateFor: item, create: true)
      })
    #else
    nil
    #endif
  }

  #if canImport(Darwin)
  private static func isHere(_ url: URL) throws -> Bool {
    var status = stat()
    guard lstat(url.path, &status) == 0 else { throw CocoaError(.fileReadNoSuchFile) }
    if status.st_flags & UInt32(SF_DATALESS) != 0 { return false }
    if status.st_mode & S_IFMT == S_IFDIR { return true }
    // A value that is asked for again has to be read again.
    var url = url
    url.removeAllCachedResourceValues()
    let values = try url.resourceValues(forKeys: [.ubiquitousItemDownloadingStatusKey])
    return values.ubiquitousItemDownloadingStatus != .notDownloaded
  }

  private static func coordinate(_ purpose: Purpose, _ url: URL, _ body: (URL) throws -> Void) throws {
    var refusal: NSError?
    var failure: (any Error)?
    let attempt = { (url: URL) in
      do { try body(url) } catch { failure = error }
    }
    let coordinator = NSFileCoordinator(filePresenter: nil)
    switch purpose {
    case .read:
      coordinator.coordinate(readingItemAt: url, options: .withoutChanges, error: &refusal, byAccessor: attempt)
    case .replace:
      coordinator.coordinate(writingItemAt: url, options: .forReplacing, error: &refusal, byAccessor: attempt)
    case .delete:
      coordinator.coordinate(writingItemAt: url, options: .forDeleting, error: &refusal, byAccessor: attempt)
    }
    if let error = failure ?? refusal { throw error }
  }
  #endif
}
