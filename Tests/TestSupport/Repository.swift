package import Foundation

/// The folder of this package, for tests that read its documents, scripts and fixtures.
package enum Repository {
  /// The nearest folder above this file that has a manifest.
  package static let root: URL = {
    var folder = URL(filePath: #filePath).deletingLastPathComponent()
    while !FileManager.default.fileExists(atPath: folder.appending(path: "Package.swift").path), folder.path != "/" {
      folder.deleteLastPathComponent()
    }
    return folder
  }()
}
