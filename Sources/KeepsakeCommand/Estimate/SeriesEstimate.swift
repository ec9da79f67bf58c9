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

  /// Versions that are stored in one commit: so many, or one that has more bytes.
  private static let maximumTogether = (versions: 64, bytes: 4 << 20)
  /// The commits that may wait to be stored, and their bytes.
  private static let maximumWaiting = (commits: 4, bytes: 12 << 20)

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
    let store = try Store.openTemporary(at: all, history: .everything)
    var together: [Data] = []
    var waiting: [(commit: PendingCommit<Void>, bytes: Int)] = []
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
      before = bytes
      let togetherBytes = together.reduce(bytes.count) { $0 + $1.count }
      if together.count == Self.maximumTogether.versions || togetherBytes > Self.maximumTogether.bytes {
        try Self.save(&together, before: index, in: store, &waiting)
      }
      together.append(bytes)
    }
    try Self.save(&together, before: versionCount, in: store, &waiting)
    for one in waiting { try one.commit.wait(within: Self.patience) }
    let contents = try store.read { try $0.contentSummaries() }
    encodedBytes = contents.reduce(0) { $0 + $1.encodedBytes }
    fullFrameCount = contents.count { $0.base == nil }
    try store.close()
    if let before {
      let store = try Store.openTemporary(at: alone)
      try Self.save([before], before: versionCount, in: store).wait(within: Self.patience)
      try store.close()
    }
    progress("\(name): loading")
    loadAloneMilliseconds = try Self.loadTime(versionCount - 1, from: alone)
    loadNewestMilliseconds = try Self.loadTime(versionCount - 1, from: all)
    loadOldestMilliseconds = try Self.loadTime(0, from: all)
  }

  private static func id(_ index: Int) -> VersionID { VersionID(high: 0, low: UInt64(index) + 1) }

  /// Begins to store versions, the last ones before an index, and waits if too many do. More can be read meanwhile.
  private static func save(
    _ versions: inout [Data], before end: Int, in store: Store,
    _ waiting: inout [(commit: PendingCommit<Void>, bytes: Int)]
  ) throws {
    guard !versions.isEmpty else { return }
    waiting.append((try save(versions, before: end, in: store), versions.reduce(0) { $0 + $1.count }))
    versions = []
    while waiting.count > maximumWaiting.commits || waiting.reduce(0, { $0 + $1.bytes }) > maximumWaiting.bytes {
      try waiting.removeFirst().commit.wait(within: patience)
    }
  }

  private static func save(_ versions: [Data], before end: Int, in store: Store) throws -> PendingCommit<Void> {
    let writer = store.writer
    return try store.submit(versions.map { ("save", $0) }) { transaction, kept in
      for (index, save) in zip(end - kept.count..<end, kept) {
        let record = VersionRecord(
          id: id(index), slot: "save", covers: index > 0 ? [id(index - 1)] : [], contents: save.hashes,
          length: save.length,
          metadata: SaveMetadata(), savedAtMilliseconds: Int64(index), writer: writer, provisional: false)
        try transaction.putVersion(StoredVersion(record: record, acknowledged: true, offered: true))
        for covered in record.covers { try transaction.markCovered(covered) }
      }
    }
  }

  /// Measured on a store that is opened anew each time, so that nothing is in memory yet. Less often if that takes
  /// long.
  private static func loadTime(_ index: Int, from folder: URL) throws -> Double {
    var best = Double.infinity
    let end = ContinuousClock.now + .milliseconds(50)
    for load in 0..<loads where load == 0 || ContinuousClock.now < end {
      let store = try Store.openTemporary(at: folder, history: .everything)
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
