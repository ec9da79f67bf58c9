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
  /// Returns whether an item's bytes are on this device. True for one that isn't in iCloud.
  package var isHere: @Sendable (URL) throws -> Bool
  /// Asks for the bytes of an item. They arrive later, if at all.
  package var fetch: @Sendable (URL) throws -> Void
  /// Calls the closure once while nobody else, and not iCloud either, changes the item; with where the item is then.
  package var coordinate: @Sendable (Purpose, URL, (URL) throws -> Void) throws -> Void
  /// Returns files with the bytes of an item's versions that lost against the current one.
  package var losers: @Sendable (URL) throws -> [URL]
  /// Lets iCloud forget the versions that lost.
  package var forgetLosers: @Sendable (URL) throws -> Void

  package init(
    container: @escaping @Sendable (_ identifier: String?) -> URL?, isHere: @escaping @Sendable (URL) throws -> Bool,
    fetch: @escaping @Sendable (URL) throws -> Void,
    coordinate: @escaping @Sendable (Purpose, URL, (URL) throws -> Void) throws -> Void,
    losers: @escaping @Sendable (URL) throws -> [URL], forgetLosers: @escaping @Sendable (URL) throws -> Void
  ) {
    self.container = container
    self.isHere = isHere
    self.fetch = fetch
    self.coordinate = coordinate
    self.losers = losers
    self.forgetLosers = forgetLosers
  }

  /// Nil on systems without iCloud.
  package static var system: Ubiquity? {
    #if canImport(Darwin)
    Ubiquity(
      container: { FileManager.default.url(forUbiquityContainerIdentifier: $0) },
      isHere: { url in
        // A value that is asked for again has to be read again.
        var url = url
        url.removeAllCachedResourceValues()
        let status = try url.resourceValues(forKeys: [.ubiquitousItemDownloadingStatusKey])
          .ubiquitousItemDownloadingStatus
        return status != .notDownloaded
      },
      fetch: { try FileManager.default.startDownloadingUbiquitousItem(at: $0) },
      coordinate: { try coordinate($0, $1, $2) },
      losers: { (NSFileVersion.unresolvedConflictVersionsOfItem(at: $0) ?? []).map(\.url) },
      forgetLosers: { url in
        for version in NSFileVersion.unresolvedConflictVersionsOfItem(at: url) ?? [] { version.isResolved = true }
        try NSFileVersion.removeOtherVersionsOfItem(at: url)
      })
    #else
    nil
    #endif
  }

  #if canImport(Darwin)
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
