import Foundation
import KeepsakeReplication

/// The assets of one folder: which there are, and the bytes of each, never others than the manifest means.
struct AssetSource: Sendable {
  let folder: AssetFolder
  let entries: [AssetManifest.Entry]
  /// The place of each path in `entries`.
  private let places: [String: Int]
  /// The manifest's file, where it is in the folder.
  let manifestPath: AssetPath?
  /// When the manifest was last written; nil without one.
  private let manifestNanoseconds: Int64?
  /// Files of this size and more are mapped; nil for none.
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

  /// The path in the folder `url` of a file that is in it; nil if it isn't. Whichever way links lead to either.
  static func path(of file: URL, in url: URL) -> AssetPath? {
    let base = url.standardizedFileURL.resolvingSymlinksInPath().path
    let parent = file.standardizedFileURL.deletingLastPathComponent().resolvingSymlinksInPath().path
    let path = (parent.hasSuffix("/") ? parent : parent + "/") + file.lastPathComponent
    let prefix = base.hasSuffix("/") ? base : base + "/"
    return path.hasPrefix(prefix) ? AssetPath.exact(String(path.dropFirst(prefix.count))).path : nil
  }

  // MARK: Names

  /// The number of the asset that the game calls `text`.
  ///
  /// Throws `refusedPath` or `unknown`.
  func number(of text: String) throws(AssetError) -> Int {
    // The usual case first: what stands in the manifest was checked.
    if let place = places[text] { return place }
    let path = try AssetPath(text)
    throw AssetError(
      .unknown, "there is no asset \(AssetPath.shown(path.text)) in the manifest: is its name spelled like that?", path: text)
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
      // Hashed by reading: a file that is cut off meanwhile ends the process only where its mapping is touched.
      guard let hash = try folder.hash(file, path: entry.path, onProgress: onProgress) else { throw changedWhileRead(entry) }
      try compare(hash, file.status, entry)
      return try folder.map(file, path: entry.path)
    }
    guard let (bytes, hash) = try folder.read(file, path: entry.path, onProgress: onProgress) else { throw changedWhileRead(entry) }
    try compare(hash, file.status, entry)
    return bytes
  }

  /// Reads an asset for its hash alone, and compares that with the manifest.
  func verify(_ number: Int, onProgress: (Int) -> Void) throws(AssetError) {
    let file = try open(number)
    guard let hash = try folder.hash(file, path: entries[number].path, onProgress: onProgress) else {
      throw changedWhileRead(entries[number])
    }
    try compare(hash, file.status, entries[number])
  }

  /// Opens an asset whose size is that of the manifest: nothing of a lying size is read, and no memory taken for it.
  @discardableResult
  func open(_ number: Int) throws(AssetError) -> AssetFolder.OpenFile {
    let entry = entries[number]
    let file = try folder.file(at: path(number))
    guard file.status.size == entry.size else {
      throw other("it has \(file.status.size) bytes where the manifest says \(entry.size)", file.status, entry)
    }
    return file
  }

  /// Whether the file was changed after the manifest was made. Dates are hints: copying may set them.
  func isNewer(_ status: AssetStatus) -> Bool {
    guard let manifestNanoseconds else { return false }
    return status.modifiedNanoseconds > manifestNanoseconds
  }

  /// What a file of another size than the manifest's is.
  func otherSize(_ status: AssetStatus, _ number: Int) -> AssetError {
    other("it has \(status.size) bytes where the manifest says \(entries[number].size)", status, entries[number])
  }

  private func compare(_ hash: ContentHash, _ status: AssetStatus, _ entry: AssetManifest.Entry) throws(AssetError) {
    guard let expected = entry.hash, expected != hash else { return }
    throw other("its bytes aren't those of the manifest (SHA-256)", status, entry)
  }

  private func other(_ what: String, _ status: AssetStatus, _ entry: AssetManifest.Entry) -> AssetError {
    let shown = AssetPath.shown(entry.path)
    guard manifestNanoseconds != nil else {
      return AssetError(.stale, "the asset \(shown) was changed since the library was opened: open it again", path: entry.path)
    }
    return isNewer(status)
      ? AssetError(
        .stale,
        "the asset \(shown) was changed after the manifest was made: \(what). Make the manifest anew with `keepsake assets manifest`, "
          + "or put the file back", path: entry.path)
      : AssetError(.damaged, "the asset \(shown) is damaged: \(what). Install the game again", path: entry.path)
  }

  private func changedWhileRead(_ entry: AssetManifest.Entry) -> AssetError {
    AssetError(.stale, "the asset \(AssetPath.shown(entry.path)) was changed while it was read; load it again", path: entry.path)
  }
}
