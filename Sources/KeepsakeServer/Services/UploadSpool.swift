#if Cloud
import Foundation
import Hummingbird
import NIOCore
import Synchronization

/// Receives large bodies that arrive in one piece into files, a limited number at a time, so that they are never in
/// memory as a whole.
final class UploadSpool: Sendable {
  private let folder: URL
  private let partials: PartialUploads
  private let open = Mutex(0)

  /// - Parameter partials: Whose budget the files count against.
  init(folder: URL, sharing partials: PartialUploads) { (self.folder, self.partials) = (folder, partials) }

  /// Receives `body` into a new file, which `use` may take over. The file is removed afterwards if it is still there.
  ///
  /// Throws if the body is larger than `limit` or not as long as declared, if too many uploads are in progress, or if
  /// unfinished uploads have no room at present.
  func receive<Result>(
    _ body: RequestBody, declared: Int?, limit: Int, use: (URL, _ count: Int) async throws -> Result
  ) async throws -> Result {
    let mayStart = open.withLock { open in
      guard open < ServerLimits.concurrentUploads else { return false }
      open += 1
      return true
    }
    guard mayStart else {
      throw partials.refusals.count(
        .uploads,
        as: APIError(
          .serviceUnavailable, .busy, "The server is receiving too many uploads; try again in a moment.",
          retryAfterSeconds: 5))
    }
    defer { open.withLock { $0 -= 1 } }
    var share = UploadBudget(bytes: 0, files: 1)
    try partials.take(share)
    defer { partials.giveBack(share) }
    let url = folder.appendingPathComponent(String(UInt64.random(in: .min ... .max), radix: 16))
    defer {
      // Already gone if it was taken over; a file that stays behind is removed at the next start.
      try? FileManager.default.removeItem(at: url)
    }
    var count = 0
    do {
      let file = try await IncomingFile(at: url)
      for try await part in body {
        guard part.readableBytes <= limit - count else {
          throw APIError(.contentTooLarge, .tooLarge, "The body is larger than \(limit) bytes.")
        }
        let more = UploadBudget(bytes: Int64(part.readableBytes), files: 0)
        try partials.take(more)
        share = share + more
        try await file.write(part.readableBytesView, at: count)
        count += part.readableBytes
      }
    }
    guard declared == nil || declared == count else {
      throw APIError(.badRequest, .badRequest, "The body ended early.")
    }
    return try await use(url, count)
  }
}
#endif
