#if Cloud
import Foundation
import KeepsakeMirror
import KeepsakeStore

/// Ties a state that lies elsewhere to the folder it belongs to, by an id that both have.
///
/// Without it the mount point of a stick that isn't mounted, or a folder named by mistake, would look as if every save had
/// been deleted.
struct FolderBinding {
  private static let fileName = "folder"
  /// An id has 36 bytes; what is larger isn't one.
  private static let maximumBytes = 64

  private let state: URL
  /// Keepsake's own folder in the synced one, which is never synced itself.
  private let reserved: URL

  /// Nil if the state lies at its usual place inside the folder: then one is never there without the other.
  ///
  /// - Throws: `MirrorError` if one of the folders can't be looked at.
  init?(folder: String, state: URL) throws {
    self.state = state
    reserved = URL(fileURLWithPath: folder, isDirectory: true)
      .appendingPathComponent(SyncState.folderName, isDirectory: true)
    if FileManager.default.fileExists(atPath: reserved.path) {
      guard try FileIdentity(folder: reserved.path) != FileIdentity(folder: state.path) else { return nil }
    }
  }

  /// Makes sure that the folder is the one that the state belongs to, or ties the two together for the first time.
  ///
  /// - Throws: `CommandFailure` if it is another folder, or none; `StoreError` if an id can't be read or written.
  func settle(for mirror: FolderMirror) throws {
    let known = try Self.id(in: state)
    let found = try Self.id(in: reserved)
    if let known {
      if known == found { return }
      // With nothing placed there is nothing that could look deleted.
      guard found == nil, mirror.placedFiles.isEmpty else { throw Self.notThisFolder }
      try keep(known)
      return
    }
    // A state from before there were ids: one of its files is enough to know the folder by.
    let placed = mirror.placedFiles
    guard placed.isEmpty || placed.contains(where: mirror.hasFile) else {
      throw Self.notThisFolder
    }
    let id = found ?? UUID().uuidString
    // The folder first: an id that only the folder has is taken over by the next run.
    if found == nil { try keep(id) }
    try AtomicFile.write(Data(id.utf8), to: state.appendingPathComponent(Self.fileName))
  }

  private func keep(_ id: String) throws {
    do {
      try FileManager.default.createDirectory(at: reserved, withIntermediateDirectories: true)
    } catch {
      throw CommandFailure(.permission, "the folder \(reserved.path) can't be made: \(error.localizedDescription)")
    }
    try AtomicFile.write(Data(id.utf8), to: reserved.appendingPathComponent(Self.fileName))
    // A folder that was just made is durable once the one it is in says so.
    try AtomicFile.syncFolder(reserved.deletingLastPathComponent().path)
  }

  private static var notThisFolder: CommandFailure {
    CommandFailure(.noInput, "this is not the folder that the state belongs to", next: "mount it, or name a new --state")
  }

  private static func id(in folder: URL) throws -> String? {
    try AtomicFile.read(folder.appendingPathComponent(fileName), maximumBytes: maximumBytes)
      .map { String(decoding: $0, as: UTF8.self) }
  }
}
#endif
