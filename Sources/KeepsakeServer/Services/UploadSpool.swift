#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication
import NIOCore
import Synchronization

/// Receives large bodies into files, at most so many at a time, so that they are never in memory as a whole.
final class UploadSpool: Sendable {
  private let folder: URL
  private let files = FileIO()
  private let open = Mutex(0)

  init(folder: URL) { self.folder = folder }

  /// Receives `body` into a new file, which `use` may take over; it is removed afterwards if it is still there.
  ///
  /// Throws when the body is empty, larger than `limit`, or not as long as was declared.
  func receive<Result>(
    _ body: RequestBody, declared: Int?, limit: Int, context: some RequestContext,
    use: (URL, _ count: Int) async throws -> Result
  ) async throws -> Result {
    let mayStart = open.withLock { open in
      guard open < ServerLimits.concurrentUploads else { return false }
      open += 1
      return true
    }
    guard mayStart else {
      throw APIError(.serviceUnavailable, .busy, "Too many uploads are under way.", retryAfterSeconds: 5)
    }
    defer { open.withLock { $0 -= 1 } }
    let file = folder.appendingPathComponent(String(UInt64.random(in: .min ... .max), radix: 16))
    defer {
      // Gone already where it was taken over; what stays behind is removed at the next start.
      try? FileManager.default.removeItem(at: file)
    }
    let counter = Counter()
    try await files.writeFile(
      contents: BoundedBody(body: body, limit: limit, counter: counter), path: file.path, context: context)
    let count = counter.count.withLock { $0 }
    guard declared == nil || declared == count else {
      throw APIError(.badRequest, .badRequest, "The body ended early.")
    }
    return try await use(file, count)
  }

  private final class Counter: Sendable {
    let count = Mutex(0)
  }

  private struct BoundedBody: AsyncSequence, Sendable {
    var body: RequestBody
    var limit: Int
    var counter: Counter

    struct AsyncIterator: AsyncIteratorProtocol {
      var base: RequestBody.AsyncIterator
      var limit: Int
      var counter: Counter

      mutating func next() async throws -> ByteBuffer? {
        guard let part = try await base.next() else { return nil }
        let count = counter.count.withLock { count in
          count += part.readableBytes
          return count
        }
        guard count <= limit else {
          throw APIError(.contentTooLarge, .tooLarge, "The body is larger than \(limit) bytes.")
        }
        return part
      }
    }

    func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(base: body.makeAsyncIterator(), limit: limit, counter: counter)
    }
  }
}
#endif
