package import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The result of making a manifest.
package struct MadeManifest: Sendable {
  package let manifest: AssetManifest
  /// The number of files and folders whose names begin with a dot, which were left out.
  package let hidden: Int
}

extension AssetManifest {
  /// How many names an error lists individually if a folder can't have a manifest; it only counts the rest.
  private static let shownNames = 50

  /// Hashes all files in a folder.
  ///
  /// - Parameters:
  ///   - output: Where the manifest will be written. It is left out if it is in the folder, and so is a file with the
  ///     manifest's default name.
  ///   - onProgress: Receives the progress.
  /// - Throws: `AssetError` with `refusedPath`, listing all names concerned, if there are files that couldn't be loaded
  ///   on every platform; `stale` if a file is changed meanwhile.
  package static func make(of url: URL, output: URL, onProgress: (AssetProgress) -> Void) throws(AssetError)
    -> MadeManifest
  {
    let folder = try AssetFolder(at: url)
    let usual = try AssetPath(fileName)
    let output = AssetSource.path(of: output, in: url)
    let listing = try folder.scan(leavingOut: output)
    let files = listing.files.filter { $0.path != usual }
    try refuse(listing, files.map(\.path))
    try listing.refuseTooLarge()
    var progress = AssetProgress(
      bytesDone: 0, bytesInAll: files.reduce(0) { $0 + Int64($1.status.size) }, filesDone: 0, filesInAll: files.count)
    var entries: [Entry] = []
    for (path, _) in files {
      let before = progress.bytesDone
      let file = try folder.file(at: path)
      guard file.status.size <= maximumAssetBytes else {
        throw AssetError(
          .tooLarge,
          """
          the file \(AssetPath.shown(path.text)) has \(file.status.size) bytes, but an asset may have at most \
          \(maximumAssetBytes)
          """,
          path: path.text)
      }
      let hash = try folder.hash(file, path: path.text) { done in
        progress.bytesDone = before + Int64(done)
        onProgress(progress)
      }
      guard let hash else {
        throw AssetError(
          .stale, "the file \(AssetPath.shown(path.text)) was changed while it was read; try again", path: path.text)
      }
      entries.append(Entry(path: path.text, size: file.status.size, hash: hash))
      progress.bytesDone = before + Int64(file.status.size)
      progress.filesDone += 1
      onProgress(progress)
    }
    return MadeManifest(manifest: try AssetManifest(entries), hidden: listing.hidden)
  }

  /// Throws if some names can't be loaded on every platform. The error lists all of them, so that they can be fixed in
  /// one go.
  private static func refuse(_ listing: AssetListing, _ paths: [AssetPath]) throws(AssetError) {
    var lines = listing.refused.map { "\(AssetPath.shown($0.path)) (\($0.reason))" }
    var names = AssetNames()
    for path in paths {
      guard let other = names.add(path) else { continue }
      lines.append(
        "\(AssetPath.shown(path.text)) (it is the same as \(AssetPath.shown(other)) where names ignore case)")
    }
    guard !lines.isEmpty else { return }
    let rest = lines.count - shownNames
    let shown = lines.prefix(shownNames).joined(separator: "; ") + (rest > 0 ? "; and \(rest) more" : "")
    throw AssetError(
      .refusedPath,
      """
      \(CountText.of(lines.count, "name")) in the folder can't be an asset's on every platform: \
      \(shown)
      """)
  }

  /// Writes the manifest, atomically and durably.
  package func write(to url: URL) throws { try AtomicFile.write(encoded(), to: url) }

  /// Returns whether the file at `url` is this manifest, byte for byte.
  package func isWritten(at url: URL) throws -> Bool {
    do {
      return try AtomicFile.read(url, maximumBytes: Self.maximumFileBytes) == encoded()
    } catch let error as StoreError where error.code == .tooLarge {
      return false
    }
  }
}
