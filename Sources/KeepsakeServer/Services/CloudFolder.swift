#if Cloud
package import Foundation

/// A cloud's data folder, for commands that neither create nor open one.
package enum CloudFolder {
  /// What every data folder has since the first start of a server on it.
  package static let databaseName = DataFolder.databaseName

  /// Ensures that a folder is one.
  ///
  /// - Throws: A `ServerError` with the code `missing` if it isn't.
  package static func check(_ url: URL) throws {
    _ = try DataFolder.existingDatabase(in: url)
  }
}
#endif
