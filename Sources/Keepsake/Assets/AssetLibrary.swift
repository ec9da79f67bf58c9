public import Foundation

/// The files that ship with a game: images, sounds, levels. They are loaded in the background, checked against a
/// manifest, and kept within a memory budget.
///
/// ```swift
/// let assets = try AssetLibrary(at: folder, budget: 64 << 20)
/// let report = try assets.check()
/// guard report.isSound else { print(report); exit(1) }
///
/// let batch = assets.load(["Images/Ship.png", "Sounds/Boom.wav"], priority: .high)
/// try await batch.waitUntilLoaded()
/// let ship = assets["Images/Ship.png"]
/// ```
///
/// `keepsake assets manifest FOLDER` writes the manifest when the game is packaged: path, size and SHA-256 of each
/// file. Everything loaded is compared with it, so a damaged image is an error, never garbage on the screen. The
/// library writes nothing and follows no symbolic links in the folder.
///
/// Paths are parts joined by `/`, as in the manifest, and case-sensitive on every file system. The library reads files
/// on two threads of its own. Safe to use from any thread or actor.
///
/// Memory never exceeds the budget: loaded bytes, bytes being read, and values made from them. What was used least
/// recently is evicted first, and is loaded again when requested. A `Data` that the game keeps isn't counted.
public final class AssetLibrary: Sendable {
  /// Where the list of assets comes from.
  public enum ManifestSource: Sendable, Hashable {
    /// `keepsake-assets.json` in the folder: for a game that ships.
    case required
    /// A manifest at another location.
    case file(URL)
    /// The files in the folder when the library is opened, without hashes: for development. Damage isn't detected.
    case none
  }

  /// How files of at least `largeFileBytes` are loaded.
  public enum LargeFiles: Sendable, Hashable {
    /// Read into memory like all other files.
    case read
    /// Memory-mapped: the system reads what is accessed and can drop it again. Mapped files still count fully against
    /// the budget.
    ///
    /// A file is read once and compared with the manifest before it is mapped. **If it is truncated while it is mapped,
    /// accessing the lost part ends the process** (SIGBUS), which no library can turn into an error, and other changes
    /// to the file show in the bytes. Use this only if nothing changes the game's files while it runs, including
    /// updaters.
    case mapped
  }

  /// The minimum size of a file that can be mapped, in bytes.
  public static let largeFileBytes = 1 << 20
  /// The default memory budget: 64 MiB.
  public static let standardBudget = 64 << 20

  /// The folder of the assets.
  public let url: URL
  /// The maximum number of bytes in memory at the same time.
  public let budget: Int

  let loader: AssetLoader
  var source: AssetSource { loader.source }

  /// Opens the assets in a folder. Reads the manifest but no assets; `check()` checks those.
  ///
  /// - Parameters:
  ///   - url: The folder.
  ///   - manifest: Where the list of assets comes from.
  ///   - budget: The maximum number of bytes in memory at the same time, at least 0.
  ///   - largeFiles: How large files are loaded.
  /// - Throws: `AssetError` with `missing` or `unreadable` for the folder, `noManifest`, `damagedManifest` or
  ///   `newerManifest`, or `misuse` for a negative budget.
  public convenience init(
    at url: URL, manifest: ManifestSource = .required, budget: Int = standardBudget, largeFiles: LargeFiles = .read
  ) throws {
    try self.init(at: url, manifest: manifest, budget: budget, largeFiles: largeFiles, reading: { _ in })
  }

  /// Opens the assets with a closure that is called before each read, on the reading thread: for tests.
  package init(
    at url: URL, manifest: ManifestSource = .required, budget: Int = standardBudget, largeFiles: LargeFiles = .read,
    reading: @escaping @Sendable (String) -> Void
  ) throws {
    guard budget >= 0 else {
      throw AssetError(.misuse, "a budget of \(budget) bytes is impossible: the smallest is 0, which keeps nothing")
    }
    self.url = url
    self.budget = budget
    loader = AssetLoader(
      try AssetSource(at: url, manifest: manifest, largeFiles: largeFiles), budget: budget, reading: reading)
  }

  deinit { loader.close() }

  // MARK: What there is

  /// The paths of all assets, sorted by their bytes.
  public var paths: [String] { source.entries.map(\.path) }

  /// The size of an asset in bytes, from the manifest; nil if there is no such asset.
  ///
  /// - Parameter path: The asset.
  /// - Returns: The size; nil if there is no such asset.
  public func size(of path: String) -> Int? { source.known(path).map { source.entries[$0].size } }

  /// The number of bytes in memory now, including those being read; at most the budget.
  public var heldBytes: Int { loader.heldBytes }

  /// Returns the location of an asset's file, for libraries that open files themselves. The file is in the manifest,
  /// and is a regular file of the right size.
  ///
  /// Its contents aren't compared with the manifest, and the file may change before it is opened.
  ///
  /// - Parameter path: The asset.
  /// - Returns: The file's location.
  /// - Throws: `AssetError`.
  public func url(for path: String) throws -> URL {
    let number = try source.number(of: path)
    try source.open(number)
    return url.appendingPathComponent(source.entries[number].path, isDirectory: false)
  }

  // MARK: Loading

  /// Starts loading assets and returns immediately.
  ///
  /// ```swift
  /// let batch = assets.load(level.images, priority: .high)
  /// ```
  ///
  /// An asset that is requested several times is read once. The batch reports what can't be loaded, including unknown
  /// paths; the others are loaded.
  ///
  /// - Parameters:
  ///   - paths: The assets, in the order of loading. Duplicates count once.
  ///   - priority: The priority among all requests.
  ///   - pinned: Whether to keep the assets in memory while the `AssetBatch` exists. If they don't fit into the budget
  ///     beside what is already pinned, nothing is loaded, and the batch fails with `overBudget` immediately. Without
  ///     pinning, assets may already be evicted when the last one is loaded.
  /// - Returns: The batch.
  @discardableResult
  public func load(_ paths: [String], priority: AssetPriority = .normal, pinned: Bool = true) -> AssetBatch {
    var failures: [AssetError] = []
    var numbers: [Int] = []
    var seen: Set<Int> = []
    for path in paths {
      do throws(AssetError) {
        let number = try source.number(of: path)
        if seen.insert(number).inserted { numbers.append(number) }
      } catch {
        failures.append(error)
      }
    }
    return AssetBatch(library: self, id: loader.begin(numbers, failures: failures, priority, isPinned: pinned))
  }

  /// The bytes of an asset if they are in memory; nil otherwise, also for unknown paths. Counts as a use.
  ///
  /// - Parameter path: The asset.
  /// - Returns: The bytes; nil if they aren't in memory.
  public subscript(path: String) -> Data? { source.known(path).flatMap { loader.loaded($0) } }

  /// Returns the bytes of an asset. Reads it on this thread if it isn't in memory, ahead of all waiting requests.
  ///
  /// Blocks; in a task, use the call with `await`. If the asset doesn't fit into the budget beside what is pinned, it
  /// is returned but not kept.
  ///
  /// - Parameter path: The asset.
  /// - Returns: The bytes.
  /// - Throws: `AssetError`.
  public func data(for path: String) throws -> Data { try loader.bytes(of: source.number(of: path)) }

  /// Returns the bytes of an asset, read on one of the library's threads if it isn't in memory.
  ///
  /// - Parameters:
  ///   - path: The asset.
  ///   - priority: The priority among all requests.
  /// - Returns: The bytes.
  /// - Throws: `AssetError`; `CancellationError` if the task is cancelled, which doesn't affect other requests.
  public func data(for path: String, priority: AssetPriority = .high) async throws -> Data {
    try await loader.bytes(of: source.number(of: path), priority)
  }

  /// Evicts everything that isn't pinned, for example when the system is short of memory.
  public func removeUnpinned() { loader.empty() }
}
