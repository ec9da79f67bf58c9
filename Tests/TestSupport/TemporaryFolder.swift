package import Foundation

/// A folder for one test, removed with this object.
package final class TemporaryFolder: Sendable {
  package let url: URL

  package init(_ name: String = "test") throws {
    url = Self.url(name)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  private init(at url: URL) throws {
    self.url = url
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    // A folder left behind in the temporary files does no harm.
    try? FileManager.default.removeItem(at: url)
  }

  /// Creates a folder in memory if the system has a location for that: for thousands of small files that needn't be
  /// synced to a disk.
  package static func inMemory(_ name: String = "test") throws -> TemporaryFolder {
    let memory = URL(fileURLWithPath: "/dev/shm")
    guard FileManager.default.isWritableFile(atPath: memory.path) else { return try TemporaryFolder(name) }
    return try TemporaryFolder(at: memory.appendingPathComponent(url(name).lastPathComponent))
  }

  /// Returns the location of a file or folder that doesn't exist yet. The caller removes what it creates there.
  package static func url(_ name: String = "test") -> URL {
    FileManager.default.temporaryDirectory.appendingPathComponent("keepsake-\(name)-\(UUID().uuidString)")
  }

  /// Runs `body` with a new folder, and removes it.
  package static func with<Result>(
    isolation: isolated (any Actor)? = #isolation, _ body: (URL) async throws -> Result
  ) async throws -> Result {
    let folder = try TemporaryFolder()
    defer { withExtendedLifetime(folder) {} }
    return try await body(folder.url)
  }
}
