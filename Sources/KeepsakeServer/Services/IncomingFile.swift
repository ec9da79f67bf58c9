#if Cloud
import Crypto
import Foundation
import KeepsakePlatform
import NIOCore

/// A file that a request's body is written to piece by piece, off the few threads that all requests share.
final class IncomingFile: Sendable {
  /// The number of bytes that are read at a time when a file is hashed.
  private static let hashedAtOnce = 1 << 20
  private static let queue = DiskQueue("keepsake.cloud.incoming")

  let url: URL
  private let descriptor: Int32

  /// Opens a file, creating it if it doesn't exist. What is in it stays.
  init(at url: URL) async throws {
    self.url = url
    descriptor = try await Self.queue.run {
      let descriptor = open(url.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { throw DiskQueue.failure("An upload can't be written to \(url.path).") }
      return descriptor
    }
  }

  deinit { close(descriptor) }

  /// Writes all of `bytes` at `offset`. When this returns, they are in the page cache, which survives the process but
  /// not a power cut.
  func write(_ bytes: ByteBufferView, at offset: Int) async throws {
    try await Self.queue.run { [self] in
      try bytes.withUnsafeBytes { raw in
        try DiskQueue.write(raw, to: descriptor, at: offset) { "An upload can't be written to \(url.path)." }
      }
    }
  }

  /// Returns the SHA-256 of the first `count` bytes of a file, read piece by piece; nil if the file is shorter, or
  /// gone.
  static func digest(of url: URL, count: Int) async throws -> SHA256.Digest? {
    try await queue.run {
      let descriptor = open(url.path, O_RDONLY | O_CLOEXEC)
      if descriptor < 0, errno == ENOENT { return nil }
      guard descriptor >= 0 else { throw DiskQueue.failure("The upload \(url.path) can't be read.") }
      defer { close(descriptor) }
      var hasher = SHA256()
      var buffer = [UInt8](repeating: 0, count: min(count, hashedAtOnce))
      var left = count
      while left > 0 {
        let step = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, min($0.count, left)) }
        if step < 0, errno == EINTR { continue }
        guard step >= 0 else { throw DiskQueue.failure("The upload \(url.path) can't be read.") }
        if step == 0 { return nil }
        buffer.withUnsafeBytes { hasher.update(bufferPointer: UnsafeRawBufferPointer(rebasing: $0[..<step])) }
        left -= step
      }
      return hasher.finalize()
    }
  }
}
#endif
