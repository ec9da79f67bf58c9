package import Foundation

// What Foundation has on Apple's systems alone: https://developer.apple.com/documentation/foundation

extension ProcessInfo {
  // .../processinfo/performexpiringactivity(withreason:using:)
  func performExpiringActivity(withReason reason: String, using block: @escaping @Sendable (Bool) -> Void) {}
  // .../processinfo/disablesuddentermination(), enablesuddentermination(): macOS only
  func disableSuddenTermination() {}
  func enableSuddenTermination() {}
}

extension FileManager {
  // .../filemanager/url(forubiquitycontaineridentifier:)
  func url(forUbiquityContainerIdentifier containerIdentifier: String?) -> URL? { nil }
  // .../filemanager/startdownloadingubiquitousitem(at:)
  func startDownloadingUbiquitousItem(at url: URL) throws {}
}

extension URLResourceKey {
  // .../urlresourcekey/ubiquitousitemdownloadingstatuskey
  static let ubiquitousItemDownloadingStatusKey = URLResourceKey(rawValue: "1")
}

/// .../urlubiquitousitemdownloadingstatus
struct URLUbiquitousItemDownloadingStatus: Hashable, RawRepresentable, Sendable {
  let rawValue: String

  static let notDownloaded = Self(rawValue: "1")
}

extension URLResourceValues {
  // .../urlresourcevalues/ubiquitousitemdownloadingstatus
  var ubiquitousItemDownloadingStatus: URLUbiquitousItemDownloadingStatus? { nil }
}

/// .../nsfilecoordinator
class NSFileCoordinator: NSObject {
  struct ReadingOptions: OptionSet {
    let rawValue: UInt
    static let withoutChanges = Self(rawValue: 1)
  }
  struct WritingOptions: OptionSet {
    let rawValue: UInt
    static let forDeleting = Self(rawValue: 1)
    static let forReplacing = Self(rawValue: 8)
  }

  init(filePresenter filePresenterOrNil: (any NSFilePresenter)?) {}

  // .../nsfilecoordinator/coordinate(readingitemat:options:error:byaccessor:)
  func coordinate(
    readingItemAt url: URL, options: ReadingOptions = [], error outError: UnsafeMutablePointer<NSError?>?,
    byAccessor reader: (URL) -> Void
  ) {}
  // .../nsfilecoordinator/coordinate(writingitemat:options:error:byaccessor:)
  func coordinate(
    writingItemAt url: URL, options: WritingOptions = [], error outError: UnsafeMutablePointer<NSError?>?,
    byAccessor writer: (URL) -> Void
  ) {}
}

/// .../nsfilepresenter
protocol NSFilePresenter: NSObjectProtocol {}

/// .../nsfileversion
class NSFileVersion: NSObject {
  // .../nsfileversion/url, isresolved, unresolvedconflictversionsofitem(at:), removeotherversionsofitem(at:)
  var url: URL { fatalError("a stub") }
  var isResolved = false
  static func unresolvedConflictVersionsOfItem(at url: URL) -> [NSFileVersion]? { nil }
  static func removeOtherVersionsOfItem(at url: URL) throws {}
}
