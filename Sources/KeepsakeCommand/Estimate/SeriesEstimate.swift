#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore

/// How much a series of saves takes in a store, and how long it takes to load.
struct SeriesEstimate: Encodable {
  /// The folder, or the first of the files, as it was named.
  var path: String
  var name: String
  var versionCount: Int
  /// Of all versions, uncompressed.
  var bytes = 0
  /// Each version compressed alone with zstd, level 3.
  var aloneBytes = 0
  /// The first version alone, each later one against the one before: the least that deltas could take.
  var leastBytes = 0
  /// In the store, including full frames.
  var encodedBytes = 0
  /// Versions, or parts of large ones, that are kept as full frames.
  var fullFrameCount = 0
  /// For the newest version, kept alone.
  var loadAloneMilliseconds = 0.0
  var loadNewestMilliseconds = 0.0
  var loadOldestMilliseconds = 0.0

  /// The number of loads, of which the fastest counts, since other programs use the processor, too.
  private static let loads = 5
  /// For a commit, on a slow disk.
  private static let patience = Duration.seconds(600)

  /// What may wait to be stored, beside one version. What waits is stored in one transaction.
  private static let maximumWaiting = (versions: 256, bytes: 16 << 20)

  /// Reads and stores all versions. Takes memory for four of them, and for those that wait to be stored.
  init(of series: SaveSeries, progress: (String) -> Void) throws {
    name = series.name
    path = series.path
    versionCount = series.files.count
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("keepsake-estimate-\(UUID().uuidString)")
    defer {
      // A failure only leaves a folder behind among the temporary files.
      try? FileManager.default.removeItem(at: folder)
    }
    let all = folder.appendingPathComponent("all")
    let alone = folder.appendingPathComponent("alone")
    var before: Data?
    let store = try Store.open(at: all, history: .everything)
    var waiting: [(commit: PendingCommit<Void>, bytes: Int)] = []
    var waitingBytes = 0
    for (index, file) in series.files.enumerated() {
      progress("\(name): version \(index + 1) of \(versionCount)")
      guard let bytes = try AtomicFile.read(file, maximumBytes: EncodedContent.maximumContentBytes) else {
        throw CommandFailure(
          .noInput, "\(Printable.text(file.path)) no longer exists", next: "try again when nothing writes there")
      }
      self.bytes += bytes.count
      let own = try Zstd.compress(bytes).count
      aloneBytes += own
      leastBytes += try before.map { try Zstd.compress(bytes, prefix: $0).count } ?? own
      waiting.append((try Self.save(bytes, as: index, in: store), bytes.count))
      waitingBytes += bytes.count
      if waiting.count >= Self.maximumWaiting.versions || waitingBytes >= Self.maximumWaiting.bytes {
        for one in waiting { try one.commit.wait(within: Self.patience) }
        (waiting, waitingBytes) = ([], 0)
      }
      before = bytes
    }
    for one in waiting { try one.commit.wait(within: Self.patience) }
    let contents = try store.read { try $0.contentSummaries() }
    encodedBytes = contents.reduce(0) { $0 + $1.encodedBytes }
    fullFrameCount = contents.count { $0.base == nil }
    try store.close()
    if let before {
      let store = try Store.open(at: alone)
      try Self.save(before, as: versionCount - 1, in: store).wait(within: Self.patience)
      try store.close()
    }
    progress("\(name): loading")
    loadAloneMilliseconds = try Self.loadTime(versionCount - 1, from: alone)
    loadNewestMilliseconds = try Self.loadTime(versionCount - 1, from: all)
    loadOldestMilliseconds = try Self.loadTime(0, from: all)
  }

  private static func id(_ index: Int) -> VersionID { VersionID(high: 0, low: UInt64(index) + 1) }

  private static func save(_ bytes: Data, as index: Int, in store: Store) throws -> PendingCommit<Void> {
    let writer = store.writer
    return try store.submit([("save", bytes)]) { transaction, kept in
      let record = VersionRecord(
        id: id(index), slot: "save", covers: index > 0 ? [id(index - 1)] : [], contents: kept.flatMap(\.hashes),
        length: bytes.count,
        metadata: SaveMetadata(), savedAtMilliseconds: Int64(index), writer: writer, provisional: false)
      try transaction.putVersion(StoredVersion(record: record, acknowledged: true, offered: true))
      for covered in record.covers { try transaction.markCovered(covered) }
    }
  }

  /// Measured on a store that is opened anew each time, so that nothing is in memory yet. Less often if that takes
  /// long.
  private static func loadTime(_ index: Int, from folder: URL) throws -> Double {
    var best = Double.infinity
    let end = ContinuousClock.now + .milliseconds(50)
    for load in 0..<loads where load == 0 || ContinuousClock.now < end {
      let store = try Store.open(at: folder, history: .everything)
      let clock = ContinuousClock()
      let start = clock.now
      try store.read { transaction in
        guard let version = try transaction.version(id(index)) else {
          throw StoreError(.missing, "a version that was just saved is missing")
        }
        _ = try transaction.plainBytes(of: version.record)
      }
      best = min(best, (clock.now - start) / .milliseconds(1))
      try store.close()
    }
    return best
  }

  // MARK: As a table

  static func table(_ estimates: [SeriesEstimate], on terminal: Terminal = .plain) -> String {
    let header = [
      "", "versions", "plain", "each alone", "least", "kept", "kept/least", "full frames", "load alone", "newest",
      "oldest",
    ]
    let rows = estimates.map { estimate in
      [
        Printable.text(estimate.name), "\(estimate.versionCount)", "\(estimate.bytes)", "\(estimate.aloneBytes)",
        "\(estimate.leastBytes)",
        "\(estimate.encodedBytes)",
        String(format: "%.2f", Double(estimate.encodedBytes) / Double(max(estimate.leastBytes, 1))),
        "\(estimate.fullFrameCount)", time(estimate.loadAloneMilliseconds), time(estimate.loadNewestMilliseconds),
        time(estimate.loadOldestMilliseconds),
      ]
    }
    return TextTable.text(header, rows, on: terminal)
  }

  private static func time(_ milliseconds: Double) -> String { String(format: "%.2f ms", milliseconds) }
}
#endif
