#if Cloud
import Foundation
import KeepsakePlatform
import KeepsakeServer
import KeepsakeStore
/// The file that a command writes, wherever the user says.
enum OutputFile {
  /// Ensures that a file may be written, before any work is done for it.
  ///
  /// - Parameters:
  ///   - mayReplace: Whether one that is there may be replaced.
  ///   - folders: Folders that belong to the command's input, in which only Keepsake writes.
  /// - Throws: `CommandFailure` if there is something at the path already, also a link that leads nowhere, or if the
  ///   file would be in a store, in what a synced folder keeps about itself, or in a cloud's data.
  static func check(_ path: String, mayReplace: Bool, apartFrom folders: [URL] = []) throws {
    var status = stat()
    guard mayReplace || lstat(path, &status) != 0 else { throw CommandFailure.exists(path) }
    let url = URL(fileURLWithPath: path)
    let own = folders.map { parts($0) }
    // A link at the path is replaced by some commands, and followed by others.
    for target in [parts(url.deletingLastPathComponent()) + [url.lastPathComponent], parts(url)] {
      let above = Array(target.dropLast())
      let isOwn = own.contains { above.starts(with: $0) }
      guard let owner = owner(of: above) ?? (isOwn ? "Keepsake's own folder" : nil) else { continue }
      throw CommandFailure(
        .data, "\(path) is in \(owner), which only Keepsake writes to", next: "name another folder")
    }
  }

  /// The components of a path to which no link leads.
  private static func parts(_ url: URL) -> [String] { url.resolvingSymlinksInPath().standardizedFileURL.pathComponents }

  /// Returns whose folder this is or is in; nil if it isn't Keepsake's.
  private static func owner(of folder: [String]) -> String? {
    let home = parts(FileManager.default.homeDirectoryForCurrentUser)
    for count in stride(from: folder.count, through: 1, by: -1) {
      let above = Array(folder.prefix(count))
      if above.last == SyncState.folderName { return "a synced folder's own \(SyncState.folderName)" }
      // Nobody keeps everything in a store: a database of that name above is another program's.
      guard count == folder.count || !home.starts(with: above) else { return nil }
      let path = above.joined(separator: "/")
      if FileManager.default.fileExists(atPath: path + "/" + Store.databaseName) { return "a store's own folder" }
      if FileManager.default.fileExists(atPath: path + "/" + CloudFolder.databaseName) { return "a cloud's data" }
    }
    return nil
  }
}
#endif
