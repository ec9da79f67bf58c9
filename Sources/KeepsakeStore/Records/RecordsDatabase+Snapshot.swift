package import Foundation

extension RecordsDatabase {
  /// Makes one file of the tables as they are now, durably and atomically; what stood under the name before is replaced.
  package func snapshot(to url: URL) throws {
    let parent = url.deletingLastPathComponent()
    try refuseOwn(url, in: parent)
    let partial = parent.appendingPathComponent(".keepsake-\(UUID().uuidString).partial")
    do {
      try StoreError.translating("making a snapshot of the records") { try DatabaseCopy.make(of: self, at: partial) }
      try StoreFiles.moveIfPresent(partial, to: url)
      try AtomicFile.syncFolder(parent.path)
    } catch {
      try? StoreFiles.remove(partial)  // The reason to give up is the error that is thrown.
      throw error
    }
  }

  /// The files beside the database are the store's: one that takes the place of another would end it.
  private func refuseOwn(_ url: URL, in parent: URL) throws {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: parent.path, isDirectory: &isFolder), isFolder.boolValue else {
      throw StoreError(.missing, "there is no folder \(parent.path) for a snapshot of the records")
    }
    guard try Self.identity(of: parent) != Self.identity(of: files.folder) else {
      throw StoreError(.misuse, "a snapshot of the records can't stand among the store's own files: name another folder")
    }
    if FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder), isFolder.boolValue {
      throw StoreError(.misuse, "\(url.path) is a folder, a snapshot of the records is a file")
    }
  }

  /// Which folder it is, under whatever name.
  private static func identity(of folder: URL) throws -> [NSNumber?] {
    do {
      // Of a link that it leads to.
      let attributes = try FileManager.default.attributesOfItem(atPath: folder.resolvingSymlinksInPath().path)
      return [attributes[.systemNumber] as? NSNumber, attributes[.systemFileNumber] as? NSNumber]
    } catch {
      throw StoreError(.io, "the folder \(folder.path) can't be looked at", cause: error)
    }
  }
}
