import Foundation
import KeepsakeReplication

/// The assets of one folder: the list of them, and the bytes of each, which always match the manifest.
struct AssetSource: Sendable {
  let folder: AssetFolder
  let entries: [AssetManifest.Entry]
  /// The index of each path in `entries`.
  private let places: [String: Int]
  /// The path of the manifest's file, if it is in the folder.
  let manifestPath: AssetPath?
  /// When the manifest was last written; nil without one.
  private let manifestNanoseconds: Int64?
  /// The minimum size of files that are mapped; nil if none are.
  private let mapsFrom: Int?

  init(at url: URL, manifest: AssetLibrary.ManifestSource, largeFiles: AssetLibrary.LargeFiles) throws(AssetError) {
    folder = try AssetFolder(at: url)
    mapsFrom = largeFiles == .mapped ? AssetLibrary.largeFileBytes : nil
    switch manifest {
    case .required:
      (entries, manifestNanoseconds) = try Self.read(url.appendingPathComponent(AssetManifest.fileName))
      manifestPath = try AssetPath(AssetManifest.fileName)
    case .file(let file):
      (entries, manifestNanoseconds) = try Self.read(file)
      manifestPath = Self.path(of: file, in: url)
    case .none:
      manifestPath = try AssetPath(AssetManifest.fileName)
      manifestNanoseconds = nil
      let listing = try folder.scan(leavingOut: manifestPath)
      try listing.refuseTooLarge()
      entries = listing.files.map { AssetManifest.Entry(path: $0.path.text, size: $0.status.size, hash: nil) }
    }
    places = Dictionary(uniqueKeysWithValues: entries.enumerated().map { ($1.path, $0) })
  }

  private static func read(_ file: URL) throws(AssetError) -> ([AssetManifest.Entry], Int64?) {
    let manifest = try AssetManifest(contentsOf: file)
    return (manifest.entries, AssetStatus.modifiedNanoseconds(of: file))
  }

  /// Returns the path of a file relative to the folder `url`; nil if it isn't in that folder. Resolves links on the way
  /// to both.
  static func path(of file: URL, in url: URL) -> AssetPath? {
    let base = url.standardizedFileURL.resolvingSymlinksInPath().path
    let parent = file.standardizedFileURL.deletingLastPathComponent().resolvingSymlinksInPath().path
    let path = (parent.hasSuffix("/") ? parent : parent + "/") + file.lastPathComponent
    let prefix = base.hasSuffix("/") ? base : base + "/"
    return path.hasPrefix(prefix) ? AssetPath.exact(String(path.dropFirst(prefix.count))).path : nil
  }

  // MARK: Names

  /// Returns the number of the asset with this path.
  ///
  /// Throws `refusedPath` or `unknown`.
  func number(of text: String) throws(AssetError) -> Int {
    // The usual case first: paths in the manifest have already been checked.
    if let place = places[text] { return place }
    let path = try AssetPath(text)
    throw AssetError(
      .unknown, "there is no asset \(AssetPath.shown(path.text)) in the manifest: check the spelling of its name",
      path: text)
  }

  func known(_ text: String) -> Int? { places[text] }

  func path(_ number: Int) throws(AssetError) -> AssetPath { try AssetPath(entries[number].path) }

  // MARK: Bytes

  /// Reads an asset and compares it with the manifest.
  ///
  /// Throws `missing`, `unreadable`, `damaged` or `stale`.
  func read(_ number: Int, onProgress: (Int) -> Void) throws(AssetError) -> Data {
    let entry = entries[number]
    let file = try open(number)
    if let mapsFrom, entry.size >= mapsFrom, entry.size > 0 {
      // Hashed by reading, not through the mapping: a file that is truncated meanwhile ends the process only where its
      // mapping is accessed.
      guard let hash = try folder.hash(file, path: entry.path, onProgress: onProgress) else {
        throw changedWhileRead(entry)
      }
      try compare(hash, file.status, entry)
      return try folder.map(file, path: entry.path)
    }
    guard let (bytes, hash) = try folder.read(file, path: entry.path, onProgress: onProgress) else {
      throw changedWhileRead(entry)
    }
    try compare(hash, file.status, entry)
    return bytes
  }

  /// Reads an asset only to hash it, and compares the hash with the manifest.
  func verify(_ number: Int, onProgress: (Int) -> Void) throws(AssetError) {
    let file = try open(number)
    guard let hash = try folder.hash(file, path: entries[number].path, onProgress: onProgress) else {
      throw changedWhileRead(entries[number])
    }
    try compare(hash, file.status, entries[number])
  }

  /// Opens an asset whose size must be that in the manifest: a file of another size isn't read, and no memory is
  /// allocated for it.
  @discardableResult
  func open(_ number: Int) throws(AssetError) -> AssetFolder.OpenFile {
    let entry = entries[number]
    let file = try folder.file(at: path(number))
    guard file.status.size == entry.size else {
      throw other("it has \(file.status.size) bytes, but the manifest lists \(entry.size)", file.status, entry)
    }
    return file
  }

  /// Whether the file was modified after the manifest was made. Dates are only hints: copying a file may set them.
  func isNewer(_ status: AssetStatus) -> Bool {
    guard let manifestNanoseconds else { return false }
    return status.modifiedNanoseconds > manifestNanoseconds
  }

  /// Returns the error for a file whose size differs from the manifest's.
  func otherSize(_ status: AssetStatus, _ number: Int) -> AssetError {
    other("it has \(status.size) bytes, but the manifest lists \(entries[number].size)", status, entries[number])
  }

  private func compare(_ hash: ContentHash, _ status: AssetStatus, _ entry: AssetManifest.Entry) throws(AssetError) {
    guard let expected = entry.hash, expected != hash else { return }
    throw other("its bytes don't match the manifest (SHA-256)", status, entry)
  }

  private func other(_ what: String, _ status: AssetStatus, _ entry: AssetManifest.Entry) -> AssetError {
    let shown = AssetPath.shown(entry.path)
    guard manifestNanoseconds != nil else {
      return AssetError(
        .stale, "the asset \(shown) was changed since the library was opened: open it again", path: entry.path)
    }
    return isNewer(status)
      ? AssetError(
        .stale,
        """
        the asset \(shown) was changed after the manifest was made: \(what). Create the manifest again with \
        `keepsake assets manifest`, or restore the file
        """, path: entry.path)
      : AssetError(.damaged, "the asset \(shown) is damaged: \(what). Install the game again", path: entry.path)
  }

  private func changedWhileRead(_ entry: AssetManifest.Entry) -> AssetError {
    AssetError(
      .stale, "the asset \(AssetPath.shown(entry.path)) was changed while it was read; load it again", path: entry.path)
  }
}
