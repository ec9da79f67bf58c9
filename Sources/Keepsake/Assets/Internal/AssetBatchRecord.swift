/// What the queue knows of one batch.
struct AssetBatchRecord {
  var priority: AssetPriority
  /// What is still to come.
  private(set) var open: Set<Int>
  /// The size of each asset that was still to come when the batch began, and its place in what was asked for.
  private let sizes: [Int: (place: Int, size: Int)]
  /// Of what is done; what is being read comes on top.
  private(set) var progress: AssetProgress
  private(set) var failures: [AssetError]
  private(set) var isCancelled = false
  /// The handle is gone.
  var isReleased = false
  var pinned: [Int]
  var listeners: [AssetQueue.Action] = []
  var streams: [UInt64: AsyncStream<AssetProgress>.Continuation] = [:]

  /// - Parameters:
  ///   - assets: All that were asked for and are known, without repetitions, in the order asked for.
  ///   - isLoaded: Whether one of them is in memory already.
  init(
    priority: AssetPriority, assets: [(asset: Int, size: Int)], isLoaded: (Int) -> Bool, failures: [AssetError], pinned: [Int]
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

  /// Nil while something is to come; then nothing, or why not all is loaded.
  var outcome: Result<Void, AssetError>? {
    if isCancelled { return .failure(AssetError(.cancelled, "the batch of assets was cancelled")) }
    guard open.isEmpty else { return nil }
    guard let first = failures.first else { return .success(()) }
    guard failures.count > 1 else { return .failure(first) }
    return .failure(
      AssetError(
        first.code, "\(failures.count) of \(progress.filesInAll) assets can't be loaded; the first: \(first.message)", path: first.path))
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
