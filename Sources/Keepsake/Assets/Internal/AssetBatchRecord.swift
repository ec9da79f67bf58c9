import KeepsakeReplication

/// What the queue knows about one batch.
struct AssetBatchRecord {
  var priority: AssetPriority
  /// Assets that have neither been loaded nor failed yet.
  private(set) var open: Set<Int>
  /// The size of each asset that wasn't loaded when the batch began, and its position in the request.
  private let sizes: [Int: (place: Int, size: Int)]
  /// The progress of finished assets only, without those being read.
  private(set) var progress: AssetProgress
  private(set) var failures: [AssetError]
  private(set) var isCancelled = false
  /// Whether the handle is gone.
  var isReleased = false
  var pinned: [Int]
  var listeners: [AssetQueue.Action] = []
  var streams: [UInt64: AsyncStream<AssetProgress>.Continuation] = [:]

  /// - Parameters:
  ///   - assets: All known assets that were requested, without duplicates, in the order of the request.
  ///   - isLoaded: Whether an asset is already in memory.
  init(
    priority: AssetPriority, assets: [(asset: Int, size: Int)], isLoaded: (Int) -> Bool, failures: [AssetError],
    pinned: [Int]
  ) {
    self.priority = priority
    self.failures = failures
    self.pinned = pinned
    progress = AssetProgress(bytesDone: 0, bytesInAll: 0, filesDone: 0, filesInAll: assets.count + failures.count)
    var open: Set<Int> = []
    var sizes: [Int: (Int, Int)] = [:]
    for (place, (asset, size)) in assets.enumerated() {
      progress.bytesInAll += Int64(size)
      if isLoaded(asset) {
        progress.bytesDone += Int64(size)
        progress.filesDone += 1
      } else {
        open.insert(asset)
        sizes[asset] = (place, size)
      }
    }
    self.open = open
    self.sizes = sizes
  }

  var isSettled: Bool { open.isEmpty || isCancelled }

  /// Nil while assets are still to come; then success, or the reason why not everything is loaded.
  var outcome: Result<Void, AssetError>? {
    if isCancelled { return .failure(AssetError(.cancelled, "the batch of assets was cancelled")) }
    guard open.isEmpty else { return nil }
    guard let first = failures.first else { return .success(()) }
    guard failures.count > 1 else { return .failure(first) }
    return .failure(
      AssetError(
        first.code,
        "\(failures.count) of \(CountText.of(progress.filesInAll, "asset")) can't be loaded; the first: "
          + first.message,
        path: first.path))
  }

  func place(of asset: Int) -> Int { sizes[asset]?.place ?? 0 }

  mutating func load(_ asset: Int) {
    guard open.remove(asset) != nil else { return }
    progress.bytesDone += Int64(sizes[asset]?.size ?? 0)
    progress.filesDone += 1
  }

  mutating func fail(_ asset: Int, _ error: AssetError) {
    guard open.remove(asset) != nil else { return }
    failures.append(error)
  }

  mutating func cancel() { isCancelled = true }
}
