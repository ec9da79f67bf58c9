public import Foundation

/// The files that ship with a game: images, sounds, levels. Loaded beside the game's frames, checked against a manifest, held within a
/// budget of memory.
///
///     let assets = try AssetLibrary(at: folder, budget: 64 << 20)
///     let report = try assets.check()
///     guard report.isSound else { print(report); exit(1) }
///
///     let batch = assets.load(["Images/Ship.png", "Sounds/Boom.wav"], priority: .high)
///     try await batch.waitUntilLoaded()
///     let ship = assets["Images/Ship.png"]
///
/// `keepsake assets manifest FOLDER` writes the manifest when the game is packed: path, size and SHA-256 of each file. Every load is compared with it, so
/// a damaged image is an error with its path, never garbage on the screen. The library writes nothing and follows no symbolic links in the folder.
///
/// Paths are parts joined by `/`, as they stand in the manifest, upper and lower case told apart everywhere, also where the file system
/// doesn't. Files are read on two threads of the library's own. Safe to use from any thread or actor.
///
/// What is in memory never passes the budget: bytes that are loaded, that are being read, and values that were made of them. What was used least recently
/// goes first, and is loaded again when it is asked for. What the game itself holds (a `Data` that it keeps) stays with the game and isn't counted.
public final class AssetLibrary: Sendable {
  /// Where the list of assets comes from.
  public enum ManifestSource: Sendable, Hashable {
    /// `keepsake-assets.json` in the folder: as a game ships.
    case required
    /// A manifest in another place.
    case file(URL)
    /// The files that are in the folder when the library is opened, without hashes: while a game is being made. Damage isn't found then.
    case none
  }

  /// How files of `largeFileBytes` and more are brought into memory.
  public enum LargeFiles: Sendable, Hashable {
    /// Read, like all others.
    case read
    /// Mapped, so that the system reads what is touched and can drop it again. They count in full against the budget all the same.
    ///
    /// The file is read once and compared with the manifest before it is mapped. **If it is cut off while it is mapped, touching the lost part ends the
    /// process** (SIGBUS), and no library can turn that into an error; what else is done to the file then shows in the bytes. So ask for
    /// this only where nothing changes the game's files while it runs, an updater among them.
    case mapped
  }

  /// From this size on a file can be mapped. Smaller ones would waste a part of a page, and gain nothing.
  public static let largeFileBytes = 1 << 20
  /// What a library holds at most, unless told otherwise: 64 MiB.
  public static let standardBudget = 64 << 20

  /// The folder of the assets.
  public let url: URL
  /// Bytes that may be in memory at once.
  public let budget: Int

  let loader: AssetLoader
  var source: AssetSource { loader.source }

  /// Opens the assets in `url`.
  ///
  /// Reads the manifest and no asset; `check()` looks at those.
  ///
  /// - Parameters:
  ///   - manifest: Where the list of assets comes from.
  ///   - budget: Bytes that may be in memory at once, 0 or more.
  ///   - largeFiles: How large files are brought into memory.
  /// - Throws: `AssetError`: `missing` or `unreadable` for the folder, `noManifest`, `damagedManifest` or `newerManifest`, `misuse` for a negative budget.
  public convenience init(
    at url: URL, manifest: ManifestSource = .required, budget: Int = standardBudget, largeFiles: LargeFiles = .read
  ) throws {
    try self.init(at: url, manifest: manifest, budget: budget, largeFiles: largeFiles, reading: { _ in })
  }

  /// With a closure that hears of each read before it is done, on the thread that does it: for tests.
  package init(
    at url: URL, manifest: ManifestSource = .required, budget: Int = standardBudget, largeFiles: LargeFiles = .read,
    reading: @escaping @Sendable (String) -> Void
  ) throws {
    guard budget >= 0 else { throw AssetError(.misuse, "a budget of \(budget) bytes can't be: 0 holds nothing") }
    self.url = url
    self.budget = budget
    loader = AssetLoader(
      try AssetSource(at: url, manifest: manifest, largeFiles: largeFiles), budget: budget, reading: reading)
  }

  deinit { loader.close() }

  // MARK: What there is

  /// The paths of all assets, sorted by their bytes.
  public var paths: [String] { source.entries.map(\.path) }

  /// The size of an asset in bytes, as the manifest has it; nil if there is no such asset.
  public func size(of path: String) -> Int? { source.known(path).map { source.entries[$0].size } }

  /// Bytes in memory now, those included that are being read: at most the budget.
  public var heldBytes: Int { loader.heldBytes }

  /// The file of an asset, for a library that wants to open it itself: it is in the manifest, and a plain file in the folder with the manifest's size.
  ///
  /// Its bytes aren't compared with the manifest, and whoever opens the URL later opens what stands there then. Throws `AssetError`.
  public func url(for path: String) throws -> URL {
    let number = try source.number(of: path)
    try source.open(number)
    return url.appendingPathComponent(source.entries[number].path, isDirectory: false)
  }

  // MARK: Loading

  /// Begins to load assets and returns at once.
  ///
  ///     let batch = assets.load(level.images, priority: .high)
  ///
  /// An asset that several ask for is read once. What can't be loaded, an unknown path among them, is told by the batch; the others are loaded.
  ///
  /// - Parameters:
  ///   - paths: In the order in which they shall come; repetitions count once.
  ///   - priority: What comes first, of all that is asked for.
  ///   - pinned: Keeps what the batch loads in memory as long as the `AssetBatch` lives. If all of it doesn't fit into the budget beside what is
  ///     pinned already, nothing is loaded and the batch fails with `overBudget` at once. Without pins, assets may have been evicted
  ///     again by the time the last one is there.
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

  /// The bytes of an asset if they are in memory now; nil otherwise, also for one that doesn't exist. Counts as a use.
  public subscript(path: String) -> Data? { source.known(path).flatMap { loader.loaded($0) } }

  /// The bytes of an asset. Reads it on this thread if it isn't in memory, ahead of everything that waits.
  ///
  /// Blocks; in a task, the call with `await` stands in its place. What doesn't fit into the budget beside what is pinned is given and not
  /// kept. Throws `AssetError`.
  public func data(for path: String) throws -> Data { try loader.bytes(of: source.number(of: path)) }

  /// The bytes of an asset, read on a thread of the library's if it isn't in memory.
  ///
  /// Throws `AssetError`, and `CancellationError` if the task is cancelled; others who wait for the asset get it all the same.
  public func data(for path: String, priority: AssetPriority = .high) async throws -> Data {
    try await loader.bytes(of: source.number(of: path), priority)
  }

  /// Lets go of everything that isn't pinned, when the system asks for memory.
  public func removeUnpinned() { loader.empty() }
}
