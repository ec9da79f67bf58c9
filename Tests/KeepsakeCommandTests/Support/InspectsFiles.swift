#if Cloud
import Foundation
import KeepsakeInspection

@testable import KeepsakeCommand

/// A suite that writes files to a folder of its own, and looks at them as `keepsake inspect` does.
protocol InspectsFiles {
  var folder: URL { get }
}

extension InspectsFiles {
  /// Removes the folder after a test; a leftover folder does no harm.
  func cleaning(_ body: () async throws -> Void) async throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body()
  }

  func path(_ name: String) -> String { folder.appendingPathComponent(name).path }
  func write(_ data: Data, _ name: String) throws { try data.write(to: folder.appendingPathComponent(name)) }

  func inspection(_ name: String) throws -> ArchiveInspection {
    guard case .archive(let inspection) = try InspectCommand.look(at: path(name)) else {
      throw CommandFailure(.software, "no file")
    }
    return inspection
  }
}
#endif
