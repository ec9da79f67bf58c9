#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization

/// Uploads that arrive in parts, each a file that holds what has arrived so far. They survive broken connections and
/// restarts of the server.
///
/// An upload without progress is removed after a day. The number of a player's uploads, and the bytes in them, are
/// limited, and so are those of all players together, with the bodies that arrive in one piece.
final class PartialUploads: Service, Sendable {
  /// One device's upload of one encoding of a content. Another device, or another encoding, makes another upload.
  struct Key: Hashable, Sendable {
    var container: ContainerID
    var device: DeviceID
    var hash: ContentHash
    /// The SHA-256 of the whole frame.
    var frame: ContentHash
  }
  enum Outcome<Result> {
    /// This many bytes have arrived, from the beginning on; the rest is missing.
    case incomplete(Int)
    case complete(Result)
  }
  private typealias Entry = UploadTable.Entry

  private let folder: URL
  private let budget: UploadBudget
  let refusals: RefusalLog
  private let clock: @Sendable () -> Int64
  private let logger: Logger
  private let state: Mutex<UploadTable>

  /// Finds the uploads that an earlier server left in `folder`. Removes old ones, and files that no device could
  /// continue.
  init(
    folder: URL, budget: UploadBudget = UploadBudget(), refusals: RefusalLog, clock: @escaping @Sendable () -> Int64,
    logger: Logger
  ) throws {
    self.folder = folder
    self.budget = budget
    self.refusals = refusals
    self.clock = clock
    self.logger = logger
    var found = UploadTable()
    do {
      let keys: Set<URLResourceKey> = [.contentModificationDateKey, .fileSizeKey, .isRegularFileKey]
      for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: Array(keys)) {
        let values = try file.resourceValues(forKeys: keys)
        guard let (key, number, total) = Self.parse(file.lastPathComponent), values.isRegularFile == true,
          let size = values.fileSize, (1...total).contains(size), found[key] == nil,
          let date = values.contentModificationDate
        else {
          try FileManager.default.removeItem(at: file)
          continue
        }
        found[key] = Entry(
          file: number, total: total, received: size,
          touchedMilliseconds: Int64(date.timeIntervalSince1970 * 1000))
      }
    } catch {
      throw ServerError(.inputOutput, "The folder \(folder.path) can't be listed.", cause: error)
    }
    state = Mutex(found)
    removeOld()
  }

  /// Removes old uploads once an hour, until the server stops.
  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do {
          try await Task.sleep(for: .seconds(ServerLimits.uploadSweepSeconds))
        } catch {
          return
        }
        self.removeOld()
      }
    }
  }

  /// Returns a number for a request that has just arrived, greater than those before. Of the requests that continue one
  /// upload, the latest to arrive writes, whichever waited longest for the database meanwhile.
  func arrival() -> UInt64 {
    state.withLock { state in
      state.lastArrival += 1
      return state.lastArrival
    }
  }

  /// Returns how many bytes of an upload have arrived; 0 for one that never began, or was removed.
  func received(_ key: Key) -> Int { state.withLock { $0[key]?.received ?? 0 } }

  /// Receives one part, which may begin anywhere in what has arrived already; bytes that arrive twice are skipped.
  ///
  /// Whatever arrives of the part counts, even if the connection then breaks. Once everything is here and matches the
  /// frame's hash, `use` gets the file, and may take it over.
  ///
  /// - Parameter writer: The request's ``arrival()``.
  func receive<Result, Body: AsyncSequence>(
    _ body: Body, _ range: ContentRange, of key: Key, by writer: UInt64,
    use: (URL, _ count: Int) async throws -> Result
  ) async throws -> Outcome<Result> where Body.Element == ByteBuffer {
    removeOld()
    let url = try begin(key, range, writer)
    var isReleased = false
    defer { if !isReleased { release(key, writer) } }
    do {
      let file = try await IncomingFile(at: url)
      var position = range.first
      for try await part in body {
        guard part.readableBytes <= range.last + 1 - position else {
          throw APIError(.badRequest, .badRequest, "The body is longer than its Content-Range.")
        }
        let known = min(max(0, try received(key, by: writer) - position), part.readableBytes)
        if known < part.readableBytes {
          try makeRoom(for: part.readableBytes - known, of: key)
          try await file.write(part.readableBytesView.dropFirst(known), at: position + known)
        }
        position += part.readableBytes
        try advance(key, writer, to: position)
      }
      guard position == range.last + 1 else { throw APIError(.badRequest, .badRequest, "The body ended early.") }
    }
    guard try end(key, writer) else { return .incomplete(try received(key, by: writer)) }
    // From here on no other request writes. If this fails, what has arrived stays: the disk may have been full.
    let isRight = try await IncomingFile.digest(of: url, count: range.total).map {
      ContentHash(digest: $0) == key.frame
    }
    guard isRight == true else {
      isReleased = true
      remove(key)
      throw APIError(
        .unprocessableContent, .frameMismatch,
        "The bytes that arrived don't have the hash in Keepsake-Frame: send them again from the beginning.")
    }
    do {
      let result = try await use(url, range.total)
      isReleased = true
      remove(key)
      return .complete(result)
    } catch let error as APIError {
      // It wouldn't be accepted the next time, either.
      isReleased = true
      remove(key)
      throw error
    }
  }

  /// Removes unfinished uploads, by any device of a container, of a content that is here already, except those being
  /// written.
  func forget(_ hash: ContentHash, of container: ContainerID) {
    let keys = state.withLock { state in
      (state.entries[container] ?? [:]).filter { $0.key.hash == hash && $0.value.writer == nil }.map(\.key)
    }
    for key in keys { remove(key, unlessWritten: true) }
  }

  /// Removes a device's unfinished uploads, or all of a container's, except those being written: these are removed
  /// later, by their age.
  func forget(_ device: DeviceID?, of container: ContainerID) {
    let keys = state.withLock { state in
      (state.entries[container] ?? [:]).filter { (device == nil || $0.key.device == device) && $0.value.writer == nil }
        .map(\.key)
    }
    for key in keys { remove(key, unlessWritten: true) }
  }

  // MARK: The table

  private func begin(_ key: Key, _ range: ContentRange, _ writer: UInt64) throws -> URL {
    var evicted: [URL] = []
    defer { evicted.forEach(removeFile) }
    return try state.withLock { state in
      if let entry = state[key] {
        guard writer > entry.lastWriter else { throw Self.superseded }
        guard entry.total == range.total else {
          throw APIError(
            .badRequest, .badRange, "This upload began with a total of \(entry.total) bytes, not \(range.total).")
        }
        guard !entry.isEnding else {
          throw APIError(.serviceUnavailable, .busy, "This upload is being completed.", retryAfterSeconds: 1)
        }
      } else {
        guard range.first == 0 else { throw APIError.wrongOffset(received: 0) }
        guard let old = state.makeRoom(for: range.total, of: key.container, now: clock()) else {
          throw APIError(
            .tooManyRequests, .tooManyUploads, "This player already has too many unfinished uploads.",
            retryAfterSeconds: ServerLimits.uploadRetrySeconds)
        }
        evicted = old.map { file(of: $0.key, $0.entry) }
      }
      let now = clock()
      var entry = state[key] ?? Entry(file: .random(in: .min ... .max), total: range.total, touchedMilliseconds: now)
      guard range.first <= entry.received else { throw APIError.wrongOffset(received: entry.received) }
      if state[key] == nil { evicted += try makeRoomForAll(UploadBudget(bytes: 0, files: 1), in: &state) }
      (entry.writer, entry.lastWriter, entry.touchedMilliseconds) = (writer, writer, now)
      state[key] = entry
      return file(of: key, entry)
    }
  }

  private func makeRoomForAll(
    _ more: UploadBudget, besides own: Key? = nil, in table: inout UploadTable
  ) throws -> [URL] {
    guard let evicted = table.makeRoomForAll(more, within: budget, besides: own, now: clock()) else {
      throw refusals.count(
        .uploads,
        as: APIError(
          .serviceUnavailable, .busy,
          "The server has too many unfinished uploads of all players; try again in a minute.",
          retryAfterSeconds: ServerLimits.uploadRetrySeconds))
    }
    return evicted.map { file(of: $0.key, $0.entry) }
  }

  /// Makes room for bytes of an upload that are about to be written.
  private func makeRoom(for bytes: Int, of key: Key) throws {
    let evicted = try state.withLock { state in
      try makeRoomForAll(UploadBudget(bytes: Int64(bytes), files: 0), besides: key, in: &state)
    }
    evicted.forEach(removeFile)
  }

  /// Takes a share of the budget for a body that arrives in one piece: at first a file, then the bytes as they arrive.
  /// ``giveBack(_:)`` ends it.
  func take(_ share: UploadBudget) throws {
    let evicted = try state.withLock { state in
      let evicted = try makeRoomForAll(share, in: &state)
      state.used = state.used + share
      return evicted
    }
    evicted.forEach(removeFile)
  }

  func giveBack(_ share: UploadBudget) {
    state.withLock { $0.used = $0.used + UploadBudget(bytes: -share.bytes, files: -share.files) }
  }

  /// What unfinished uploads take of the budget.
  var used: UploadBudget { state.withLock { $0.used } }

  private func received(_ key: Key, by writer: UInt64) throws -> Int {
    try state.withLock { state in
      guard let entry = state[key], entry.writer == writer else { throw Self.superseded }
      return entry.received
    }
  }

  private func advance(_ key: Key, _ writer: UInt64, to position: Int) throws {
    try state.withLock { state in
      guard let entry = state[key], entry.writer == writer else { throw Self.superseded }
      state[key]?.received = max(entry.received, position)
      state[key]?.touchedMilliseconds = clock()
    }
  }

  private static var superseded: APIError {
    APIError(.conflict, .superseded, "A later request continues this upload.")
  }

  /// Whether everything has arrived; from then on no other request may write.
  private func end(_ key: Key, _ writer: UInt64) throws -> Bool {
    try state.withLock { state in
      guard let entry = state[key], entry.writer == writer else { throw Self.superseded }
      if entry.received == entry.total { state[key]?.isEnding = true }
      return entry.received == entry.total
    }
  }

  /// Ends a request; what it sent stays. An upload of which nothing has arrived is removed.
  private func release(_ key: Key, _ writer: UInt64) {
    let isEmpty = state.withLock { state in
      guard let entry = state[key], entry.writer == writer else { return false }
      state[key]?.writer = nil
      state[key]?.isEnding = false
      return entry.received == 0
    }
    if isEmpty { remove(key, unlessWritten: true) }
  }

  private func remove(_ key: Key, unlessWritten: Bool = false) {
    let file = state.withLock { state -> URL? in
      guard let entry = state[key], !unlessWritten || entry.writer == nil else { return nil }
      state[key] = nil
      return self.file(of: key, entry)
    }
    if let file { removeFile(file) }
  }

  /// Removes old uploads. Searches all of them, so not at every part that arrives.
  private func removeOld() {
    let now = clock()
    let old = state.withLock { state -> [Key] in
      if let swept = state.sweptMilliseconds, (0..<ServerLimits.uploadLookMilliseconds).contains(now - swept) {
        return []
      }
      state.sweptMilliseconds = now
      return state.entries.values.flatMap { entries in
        entries.filter {
          $0.value.writer == nil && $0.value.touchedMilliseconds <= now - ServerLimits.uploadLifetimeMilliseconds
        }.map(\.key)
      }
    }
    for key in old { remove(key, unlessWritten: true) }
  }

  // MARK: Files

  private func file(of key: Key, _ entry: Entry) -> URL {
    folder.appendingPathComponent(
      "\(key.container)-\(key.device)-\(key.hash)-\(key.frame)-\(entry.total)-\(entry.file)")
  }

  private static func parse(_ name: String) -> (Key, file: UInt64, total: Int)? {
    let parts = name.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 6, let container = ContainerID(parts[0]), let device = DeviceID(parts[1]),
      let hash = ContentHash(parts[2]), let frame = ContentHash(parts[3]), let total = Int(parts[4]),
      let file = UInt64(parts[5]), (1...ServerLimits.contentBytes).contains(total)
    else { return nil }
    return (Key(container: container, device: device, hash: hash, frame: frame), file, total)
  }

  private func removeFile(_ url: URL) {
    do {
      try FileManager.default.removeItem(at: url)
    } catch CocoaError.fileNoSuchFile, CocoaError.fileReadNoSuchFile {
      // It was taken over.
    } catch {
      // It takes up room until the next start, which removes it or fails openly.
      logger.failure("An upload's file can't be removed", error)
    }
  }
}
#endif
