#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore

/// What `keepsake wrap` remembers for all games, in `wrap.json`: what Steam's launch options need not repeat. Each
/// field is the default of the option of that name.
struct WrapSettings: Hashable, Sendable, Codable {
  var folder: String?
  var cloud: String?
  var appKey: String?
  var manifest: String?
  var conflict: String?
  var wait: Int?

  static let fileName = "wrap.json"
  static let manifestName = "manifest.yaml"
  private static let maximumBytes = 64 * 1024

  /// Reads the settings in `folder`; none if there is no file.
  ///
  /// - Throws: `CommandFailure` for a file that isn't one of settings.
  static func read(in folder: URL) throws -> WrapSettings {
    let file = folder.appendingPathComponent(fileName)
    guard let data = try AtomicFile.read(file, maximumBytes: maximumBytes) else { return WrapSettings() }
    do {
      let names = try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
      let known: Set = ["folder", "cloud", "appKey", "manifest", "conflict", "wait"]
      if let unknown = names.keys.sorted().first(where: { !known.contains($0) }) {
        throw CommandFailure(
          .data, "\(file.path) has an unknown setting \"\(unknown)\"",
          next: "it may have \(known.sorted().joined(separator: ", "))")
      }
      return try JSONDecoder().decode(WrapSettings.self, from: data)
    } catch let error as CommandFailure {
      throw error
    } catch {
      throw CommandFailure(
        .data, "\(file.path) can't be read: \(ErrorReason.text(error))",
        next: "write it as JSON, such as {\"folder\": \"/home/me/Dropbox/saves\"}")
    }
  }
}
#endif
