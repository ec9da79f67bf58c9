#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeMirror
import KeepsakeStore
import KeepsakeSync

/// What a synced folder keeps about itself: a store, the device's credentials, the table of placed files.
struct SyncState {
  /// The state's folder inside the synced one.
  static let folderName = SavePath.reservedName
  private static let credentialsName = "credentials.json"
  /// Of the files here: credentials have a few hundred bytes, and recovery codes some thousand.
  static let maximumBytes = 64 * 1024

  let url: URL

  /// Opens the state of `folder`, or the folder that was named instead, and creates it if it doesn't exist.
  ///
  /// - Throws: `StoreError` if the folder can't be created.
  init(folder: String, named: String?) throws {
    if let named {
      url = URL(fileURLWithPath: named, isDirectory: true)
    } else {
      url = URL(fileURLWithPath: folder, isDirectory: true).appendingPathComponent(Self.folderName, isDirectory: true)
    }
    // One person's credentials and saves: readable by that person only.
    try StoreFolder.create(url, isPrivate: true)
  }

  /// Returns the credentials of this device; nil before it registered.
  func credentials() throws -> CloudCredentials? {
    let file = url.appendingPathComponent(Self.credentialsName)
    guard FileManager.default.fileExists(atPath: file.path) else { return nil }
    do {
      let handle = try FileHandle(forReadingFrom: file)
      let data = try handle.read(upToCount: Self.maximumBytes) ?? Data()
      return try JSONDecoder().decode(CloudCredentials.self, from: data)
    } catch {
      throw CommandFailure(
        .data, "the credentials in \(file.path) can't be read: \(ErrorReason.text(error))",
        next: "remove the file and join the player again with --join or --recover; the files in the folder are kept")
    }
  }

  func keep(_ credentials: CloudCredentials) throws { try write(credentials, to: Self.credentialsName) }

  func write(_ value: some Encodable, to name: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try AtomicFile.write(try encoder.encode(value), to: url.appendingPathComponent(name), access: .ownerOnly)
  }
}
#endif
