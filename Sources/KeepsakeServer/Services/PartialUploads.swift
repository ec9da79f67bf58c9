#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization

/// Uploads that come in parts: each a file that holds what has come so far. They outlive broken connections and the server's own end.
///
/// What nobody goes on with is removed after a day. Of one player there are only so many, with only so many bytes.
final class PartialUploads: Service, Sendable {
  /// One device's upload of one encoding of a content. Another device's, or another encoding, is another upload.
  struct Key: Hashable, Sendable {
    var container: ContainerID
    var device: DeviceID
    var hash: ContentHash
    /// The SHA-256 of the whole frame.
    var frame: ContentHash
  }
  enum Outcome<Result> {
    /// So many bytes are here from the beginning on; the rest has yet to come.
    case incomplete(Int)
    case complete(Result)
  }
  private struct Entry {
    var total: Int
    var received = 0
    var touchedMilliseconds: Int64
    /// Which request writes. A later one takes over from one whose connection may have died unnoticed.
    var writer: UInt64?
    /// All of it has come and is being looked at.
    var isEnding = false
  }
  private struct State {
    /// Of each container apart, so that what one player does costs the others nothing.
    var entries: [ContainerID: [Key: Entry]] = [:]
    var lastWriter: UInt64 = 0
    var sweptMilliseconds: Int64?

    subscript(_ key: Key) -> Entry? {
      get { entries[key.container]?[key] }
      set {
        entries[key.container, default: [:]][key] = newValue
        if entries[key.container]?.isEmpty == true { entries[key.container] = nil }
      }
    }
  }
  private let folder: URL
  private let clock: @Sendable () -> Int64
  private let logger: Logger
  private let state: Mutex<State>

  /// Finds the uploads that an earlier server left in `folder`, and removes what is old, and what is nothing that anybody could go on with.
  init(folder: URL, clock: @escaping @Sendable () -> Int64, logger: Logger) throws {
    self.folder = folder
    self.clock = clock
    self.logger = logger
    var found = State()
    do {
      let keys: Set<URLResourceKey> = [.contentModificationDateKey, .fileSizeKey, .isRegularFileKey]
      for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: Array(keys)) {
        let values = try file.resourceValues(forKeys: keys)
        guard let (key, total) = Self.parse(file.lastPathComponent), values.isRegularFile == true,
          let size = values.fileSize, (1...total).contains(size), found[key] == nil,
          let date = values.contentModificationDate
        else {
          try FileManager.default.removeItem(at: file)
          continue
        }
        found[key] = Entry(
          total: total, received: size, touchedMilliseconds: Int64(date.timeIntervalSince1970 * 1000))
      }
    } catch {
      throw ServerError(.inputOutput, "The folder \(folder.path) can't be looked through.", cause: error)
    }
    state = Mutex(found)
    removeOld()
  }

  /// Looks for old uploads once an hour, until the server stops.
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

  /// How many bytes of an upload are here; 0 for one that never began, or was removed.
  func received(_ key: Key) -> Int { state.withLock { $0[key]?.received ?? 0 } }

  /// Takes one part, which may begin anywhere in what is here already; what comes twice is passed over. Whatever arrives of it counts,
  /// also if the connection then breaks. When all is here and is what its frame's hash says, `use` gets the file, and may take it over.
  func receive<Result>(
    _ body: RequestBody, _ range: ContentRange, of key: Key, use: (URL, _ count: Int) async throws -> Result
  ) async throws -> Outcome<Result> {
    removeOld()
    let writer = try begin(key, range)
    var isReleased = false
    defer { if !isReleased { release(key, writer) } }
    let url = file(of: key, total: range.total)
    do {
      let file = try await IncomingFile(at: url)
      var position = range.first
      for try await part in body {
        guard part.readableBytes <= range.last + 1 - position else {
          throw APIError(.badRequest, .badRequest, "The body is longer than its Content-Range says.")
        }
        let known = min(max(0, try received(key, by: writer) - position), part.readableBytes)
        if known < part.readableBytes {
          try await file.write(part.readableBytesView.dropFirst(known), at: position + known)
        }
        position += part.readableBytes
        try advance(key, writer, to: position)
      }
      guard position == range.last + 1 else { throw APIError(.badRequest, .badRequest, "The body ended early.") }
    }
    guard try end(key, writer) else { return .incomplete(try received(key, by: writer)) }
    // From here on nobody else writes. If this fails, what has come stays: the disk may have been full.
    let isRight = try await IncomingFile.digest(of: url, count: range.total).map { ContentHash(digest: $0) == key.frame }
    guard isRight == true else {
      isReleased = true
      remove(key)
      throw APIError(
        .unprocessableContent, .frameMismatch, "What has come isn't what Keepsake-Frame says: send it again from its beginning.")
    }
    do {
      let result = try await use(url, range.total)
      isReleased = true
      remove(key)
      return .complete(result)
    } catch let error as APIError {
      // It wouldn't be taken the next time, either.
      isReleased = true
      remove(key)
      throw error
    }
  }

  /// Removes what a container's devices have begun to send of a content that is here now, unless it is being written.
  func forget(_ hash: ContentHash, of container: ContainerID) {
    let keys = state.withLock { state in
      (state.entries[container] ?? [:]).filter { $0.key.hash == hash && $0.value.writer == nil }.map(\.key)
    }
    for key in keys { remove(key, unlessWritten: true) }
  }

  /// Removes what a device has begun to send, or all of a container's, unless it is being written; that goes with the others, by its age.
  func forget(_ device: DeviceID?, of container: ContainerID) {
    let keys = state.withLock { state in
      (state.entries[container] ?? [:]).filter { (device == nil || $0.key.device == device) && $0.value.writer == nil }.map(\.key)
    }
    for key in keys { remove(key, unlessWritten: true) }
  }

  // MARK: The table

  private func begin(_ key: Key, _ range: ContentRange) throws -> UInt64 {
    var evicted: [(Key, Int)] = []
    defer { for (key, total) in evicted { removeFile(file(of: key, total: total)) } }
    return try state.withLock { state in
      if let entry = state[key] {
        guard entry.total == range.total else {
          throw APIError(.badRequest, .badRange, "This frame began with \(entry.total) bytes in all, not \(range.total).")
        }
        guard !entry.isEnding else {
          throw APIError(.serviceUnavailable, .busy, "This upload is being completed.", retryAfterSeconds: 1)
        }
      } else {
        guard range.first == 0 else { throw APIError.wrongOffset(received: 0) }
        evicted = try Self.makeRoom(for: range.total, in: &state.entries[key.container, default: [:]], now: clock())
        state[key] = Entry(total: range.total, touchedMilliseconds: clock())
      }
      let received = state[key]?.received ?? 0
      guard range.first <= received else { throw APIError.wrongOffset(received: received) }
      state.lastWriter += 1
      let writer = state.lastWriter
      state[key]?.writer = writer
      state[key]?.touchedMilliseconds = clock()
      return writer
    }
  }

  /// Lets go what its player hasn't gone on with for longest, where there would be too many. Throws if all of them are in use.
  private static func makeRoom(
    for bytes: Int, in entries: inout [Key: Entry], now: Int64
  ) throws -> [(Key, Int)] {
    var own = entries.sorted { ($0.value.touchedMilliseconds, $0.key.frame) < ($1.value.touchedMilliseconds, $1.key.frame) }[...]
    var evicted: [(Key, Int)] = []
    while own.count >= ServerLimits.uploadsPerPlayer
      || own.reduce(bytes, { $0 + $1.value.total }) > ServerLimits.uploadBytesPerPlayer
    {
      guard let oldest = own.popFirst(), oldest.value.writer == nil,
        now - oldest.value.touchedMilliseconds >= ServerLimits.uploadIdleMilliseconds
      else {
        throw APIError(
          .tooManyRequests, .tooManyUploads, "Too much of this player's is on its way already.",
          retryAfterSeconds: ServerLimits.uploadRetrySeconds)
      }
      evicted.append((oldest.key, oldest.value.total))
    }
    for (key, _) in evicted { entries[key] = nil }
    return evicted
  }

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
    APIError(.conflict, .superseded, "A later request goes on with this upload.")
  }

  /// Whether all has come; then nobody else may write any more.
  private func end(_ key: Key, _ writer: UInt64) throws -> Bool {
    try state.withLock { state in
      guard let entry = state[key], entry.writer == writer else { throw Self.superseded }
      if entry.received == entry.total { state[key]?.isEnding = true }
      return entry.received == entry.total
    }
  }

  /// A request is over; what came by it stays. Of an upload of which nothing came nothing stays.
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
    let total = state.withLock { state -> Int? in
      guard let entry = state[key], !unlessWritten || entry.writer == nil else { return nil }
      state[key] = nil
      return entry.total
    }
    if let total { removeFile(file(of: key, total: total)) }
  }

  /// Looks at all uploads, but not at every part that comes.
  private func removeOld() {
    let now = clock()
    let old = state.withLock { state -> [Key] in
      if let swept = state.sweptMilliseconds, (0..<ServerLimits.uploadLookMilliseconds).contains(now - swept) { return [] }
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

  private func file(of key: Key, total: Int) -> URL {
    folder.appendingPathComponent("\(key.container)-\(key.device)-\(key.hash)-\(key.frame)-\(total)")
  }

  private static func parse(_ name: String) -> (Key, total: Int)? {
    let parts = name.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 5, let container = ContainerID(parts[0]), let device = DeviceID(parts[1]),
      let hash = ContentHash(parts[2]), let frame = ContentHash(parts[3]), let total = Int(parts[4]),
      (1...ServerLimits.contentBytes).contains(total)
    else { return nil }
    return (Key(container: container, device: device, hash: hash, frame: frame), total)
  }

  private func removeFile(_ url: URL) {
    do {
      try FileManager.default.removeItem(at: url)
    } catch CocoaError.fileNoSuchFile, CocoaError.fileReadNoSuchFile {
      // Taken over.
    } catch {
      // It takes room until the next start, which removes it or fails openly.
      logger.error("An upload's file can't be removed", metadata: ["error": "\(error)"])
    }
  }
}
#endif
