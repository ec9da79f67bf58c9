import Foundation

/// Who waits for which asset, and which asset is read next: by priority, then in the order of the requests. Pure
/// decisions, without threads and files.
///
/// However many requests there are for an asset, it is read once. An asset that nobody requests any more isn't read.
struct AssetQueue {
  /// What to do after the lock is released.
  typealias Action = @Sendable () -> Void
  typealias Delivery = @Sendable (Result<Data, any Error>) -> Void

  /// A caller that waits for one asset's bytes.
  private struct Single {
    var priority: AssetPriority
    var deliver: Delivery
  }

  /// An asset that is requested.
  private struct Wanted {
    var batches: Set<UInt64> = []
    var singles: [UInt64: Single] = [:]
    var priority = AssetPriority.low
    /// When it was first requested, as a running number.
    var order: UInt64
    var isReading = false
    /// Bytes read so far.
    var readBytes = 0

    var isForgotten: Bool { batches.isEmpty && singles.isEmpty && !isReading }
  }

  private var wanted: [Int: Wanted] = [:]
  /// Assets whose read has begun but not ended: one per reading thread.
  private var reading: Set<Int> = []
  private var line = AssetLine()
  private var batches: [UInt64: AssetBatchRecord] = [:]
  private var lastOrder: UInt64 = 0

  /// Whether nothing waits to be read.
  var isEmpty: Bool { wanted.count == reading.count }

  func isReading(_ asset: Int) -> Bool { reading.contains(asset) }
  func hasBatches(_ asset: Int) -> Bool { wanted[asset]?.batches.isEmpty == false }
  func hasSingles(_ asset: Int) -> Bool { wanted[asset]?.singles.isEmpty == false }

  // MARK: Asking

  mutating func add(_ batch: AssetBatchRecord, as id: UInt64) {
    batches[id] = batch
    for asset in batch.open.sorted(by: { batch.place(of: $0) < batch.place(of: $1) }) {
      want(asset, batch.priority) { $0.batches.insert(id) }
    }
  }

  mutating func add(_ id: UInt64, for asset: Int, _ priority: AssetPriority, _ deliver: @escaping Delivery) {
    want(asset, priority) { $0.singles[id] = Single(priority: priority, deliver: deliver) }
  }

  private mutating func want(_ asset: Int, _ priority: AssetPriority, _ join: (inout Wanted) -> Void) {
    var entry: Wanted
    if let known = wanted[asset] {
      entry = known
    } else {
      lastOrder += 1
      entry = Wanted(order: lastOrder)
      entry.priority = priority
      line.insert(AssetLine.Position(priority: priority, order: entry.order, asset: asset))
    }
    join(&entry)
    wanted[asset] = entry
    settlePriority(of: asset)
  }

  /// Gives an asset the highest priority of its requests, and forgets it if there are none.
  private mutating func settlePriority(of asset: Int) {
    guard let entry = wanted[asset] else { return }
    guard !entry.isForgotten else {
      wanted[asset] = nil
      return
    }
    let all = entry.batches.compactMap { batches[$0]?.priority } + entry.singles.values.map(\.priority)
    guard let highest = all.max(), highest != entry.priority else { return }
    wanted[asset]?.priority = highest
    // Its old position is skipped when it comes up.
    if !entry.isReading { line.insert(AssetLine.Position(priority: highest, order: entry.order, asset: asset)) }
  }

  mutating func raise(_ id: UInt64, to priority: AssetPriority) {
    guard let batch = batches[id], batch.priority < priority else { return }
    batches[id]?.priority = priority
    for asset in batch.open { settlePriority(of: asset) }
  }

  /// Withdraws one request. Other requests aren't affected.
  mutating func withdraw(_ id: UInt64, from asset: Int) {
    guard wanted[asset]?.singles.removeValue(forKey: id) != nil else { return }
    settlePriority(of: asset)
  }

  mutating func cancel(_ id: UInt64) -> [Action] {
    guard let batch = batches[id], !batch.isSettled else { return [] }
    for asset in batch.open {
      wanted[asset]?.batches.remove(id)
      settlePriority(of: asset)
    }
    batches[id]?.cancel()
    return settled(id)
  }

  // MARK: Reading

  /// Returns the asset to read next, and removes it from the line.
  mutating func next() -> Int? {
    while let place = line.popFirst() {
      guard let entry = wanted[place.asset], !entry.isReading, entry.order == place.order,
        entry.priority == place.priority
      else {
        continue
      }
      return place.asset
    }
    return nil
  }

  /// Puts an asset back into the line, at its old position.
  mutating func putBack(_ asset: Int) {
    guard let entry = wanted[asset] else { return }
    line.insert(AssetLine.Position(priority: entry.priority, order: entry.order, asset: asset))
  }

  mutating func begin(_ asset: Int) {
    if wanted[asset] == nil {
      lastOrder += 1
      wanted[asset] = Wanted(order: lastOrder)
    }
    wanted[asset]?.isReading = true
    reading.insert(asset)
  }

  /// Records how many bytes of an asset were read so far.
  mutating func note(_ bytes: Int, of asset: Int) {
    wanted[asset]?.readBytes = bytes
    for id in wanted[asset]?.batches ?? [] { reportProgress(of: id) }
  }

  /// Delivers the result of a read to all who wait for it. Batches get `noRoom` instead if the bytes couldn't be kept.
  mutating func finish(_ asset: Int, _ result: Result<Data, AssetError>, noRoom: AssetError?) -> [Action] {
    reading.remove(asset)
    guard let entry = wanted.removeValue(forKey: asset) else { return [] }
    var actions: [Action] = []
    for (_, single) in entry.singles.sorted(by: { $0.key < $1.key }) {
      let answer = result.mapError { $0 as any Error }
      actions.append { single.deliver(answer) }
    }
    for id in entry.batches.sorted() {
      switch (result, noRoom) {
      case (.success, nil): batches[id]?.load(asset)
      case (.success, .some(let error)), (.failure(let error), _): batches[id]?.fail(asset, error)
      }
      reportProgress(of: id)
      actions += settled(id)
    }
    return actions
  }

  /// Delivers an asset to the callers that wait for it alone. Batches continue to wait until there is room for it.
  mutating func finishSingles(_ asset: Int, _ bytes: Data) -> [Action] {
    reading.remove(asset)
    guard var entry = wanted[asset] else { return [] }
    let actions = entry.singles.sorted { $0.key < $1.key }.map { _, single in
      { @Sendable in single.deliver(.success(bytes)) }
    }
    entry.singles = [:]
    entry.isReading = false
    entry.readBytes = 0
    wanted[asset] = entry
    putBack(asset)
    settlePriority(of: asset)
    return actions
  }

  /// Fails the batches that wait for an asset for which there is no room.
  mutating func failBatches(_ asset: Int, _ error: AssetError) -> [Action] {
    guard let entry = wanted[asset] else { return [] }
    wanted[asset]?.batches = []
    settlePriority(of: asset)
    return entry.batches.sorted().flatMap { id in
      batches[id]?.fail(asset, error)
      return settled(id)
    }
  }

  // MARK: Batches

  subscript(batch id: UInt64) -> AssetBatchRecord? { batches[id] }

  /// Records that the batch's handle is gone, and removes the batch immediately, or when it is settled. Returns what it
  /// pinned.
  mutating func release(_ id: UInt64) -> [Int] {
    guard let batch = batches[id] else { return [] }
    batches[id]?.pinned = []
    if batch.isSettled { batches[id] = nil } else { batches[id]?.isReleased = true }
    return batch.pinned
  }

  /// Takes the pins of a cancelled batch.
  mutating func takePins(of id: UInt64) -> [Int] {
    defer { batches[id]?.pinned = [] }
    return batches[id]?.pinned ?? []
  }

  /// Calls `body` when the batch is settled. Returns true if it already is; `body` isn't called then.
  mutating func listen(to id: UInt64, _ body: @escaping Action) -> Bool {
    guard let batch = batches[id], !batch.isSettled else { return true }
    batches[id]?.listeners.append(body)
    return false
  }

  /// Adds a stream of progress. Returns false if no more progress will come.
  mutating func addStream(_ stream: AsyncStream<AssetProgress>.Continuation, as key: UInt64, to id: UInt64) -> Bool {
    guard let batch = batches[id], !batch.isSettled else { return false }
    batches[id]?.streams[key] = stream
    stream.yield(progress(of: id))
    return true
  }

  mutating func removeStream(_ key: UInt64, from id: UInt64) { batches[id]?.streams[key] = nil }

  func progress(of id: UInt64) -> AssetProgress {
    guard let batch = batches[id] else {
      return AssetProgress(bytesDone: 0, bytesInAll: 0, filesDone: 0, filesInAll: 0)
    }
    var progress = batch.progress
    for asset in reading where batch.open.contains(asset) { progress.bytesDone += Int64(wanted[asset]?.readBytes ?? 0) }
    return progress
  }

  private func reportProgress(of id: UInt64) {
    guard let streams = batches[id]?.streams, !streams.isEmpty else { return }
    let progress = progress(of: id)
    // Under the lock, so that no older figure comes after a newer one. Yielding only enqueues it.
    for stream in streams.values { stream.yield(progress) }
  }

  private mutating func settled(_ id: UInt64) -> [Action] {
    guard let batch = batches[id], batch.isSettled else { return [] }
    batches[id]?.listeners = []
    batches[id]?.streams = [:]
    if batch.isReleased { batches[id] = nil }
    let streams = batch.streams.sorted { $0.key < $1.key }.map(\.value)
    return batch.listeners + streams.map { stream in { @Sendable in stream.finish() } }
  }
}
