#if Cloud
import Foundation
import KeepsakeMirror
import KeepsakeStore

/// Binds a state that is kept elsewhere to the folder that it belongs to, by an id that both contain.
///
/// Without it, the mount point of a stick that isn't mounted, or a folder named by mistake, would look as if every save
/// had been deleted.
struct FolderBinding {
  private static let fileName = "folder"
  /// An id has 36 bytes; anything larger isn't one.
  private static let maximumBytes = 64

  private let state: URL
  /// Keepsake's own folder in the synced one, which is never synced itself.
  private let reserved: URL

  /// Nil if the state is at its usual location inside the folder: then neither exists without the other.
  ///
  /// - Throws: `MirrorError` if one of the folders can't be examined.
  init?(folder: String, state: URL) throws {
    self.state = state
    reserved = URL(fileURLWithPath: folder, isDirectory: true)
      .appendingPathComponent(SyncState.folderName, isDirectory: true)
    if FileManager.default.fileExists(atPath: reserved.path) {
      guard try FileIdentity(folder: reserved.path) != FileIdentity(folder: state.path) else { return nil }
    }
  }

  /// Ensures that the folder is the one that the state belongs to, or binds the two for the first time.
  ///
  /// - Throws: `CommandFailure` if it is another folder, or none; `StoreError` if an id can't be read or written.
  func settle(for mirror: FolderMirror) throws {
    let known = try Self.id(in: state)
    let found = try Self.id(in: reserved)
    if let known {
      if known == found { return }
      // If no files were placed, none can look deleted.
      guard found == nil, mirror.placedFiles.isEmpty else { throw Self.notThisFolder }
      try keep(known)
      return
    }
    // A state without an id: one of its files is enough to recognize the folder.
    let placed = mirror.placedFiles
    guard placed.isEmpty || placed.contains(where: mirror.hasFile) else {
      throw Self.notThisFolder
    }
    let id = found ?? UUID().uuidString
    // The folder first: the next run takes over an id that only the folder has.
    if found == nil { try keep(id) }
    try AtomicFile.write(Data(id.utf8), to: state.appendingPathComponent(Self.fileName))
  }

  private func keep(_ id: String) throws {
    try StoreFolder.create(reserved)
    try AtomicFile.write(Data(id.utf8), to: reserved.appendingPathComponent(Self.fileName))
  }

  private static var notThisFolder: CommandFailure {
    CommandFailure(
      .noInput, "the --state folder belongs to another folder than this one",
      next: "mount the right folder, or name a new --state folder")
  }

  private static func id(in folder: URL) throws -> String? {
    try AtomicFile.read(folder.appendingPathComponent(fileName), maximumBytes: maximumBytes)
      .map { String(decoding: $0, as: UTF8.self) }
  }
}
#endif
