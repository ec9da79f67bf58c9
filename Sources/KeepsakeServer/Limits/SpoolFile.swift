#if Cloud
import Foundation
import KeepsakePlatform
import NIOCore

/// A file without a name, for a body or a response that is too large to be in memory while its client is slow. It is
/// gone when nothing uses it any more, however the server ends.
final class SpoolFile: Sendable {
  private static let queue = DiskQueue("keepsake.cloud.spool")

  private let descriptor: Int32
  private let share: Allotment.Share

  /// - Parameter share: What it takes of the disk. It grows with the file.
  private init(descriptor: Int32, _ share: Allotment.Share) {
    self.descriptor = descriptor
    self.share = share
  }

  deinit { close(descriptor) }

  /// Creates an empty file in `folder`. Throws an `APIError` if spooled bytes have no room at present.
  static func create(in folder: URL, of disk: Allotment) async throws -> SpoolFile {
    guard let share = disk.share(0) else { throw APIError.overBudget("bodies in files") }
    let path = folder.appendingPathComponent("spool-" + String(UInt64.random(in: .min ... .max), radix: 16)).path
    let descriptor = try await queue.run {
      let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { throw DiskQueue.failure("A file for a body can't be created in \(folder.path).") }
      unlink(path)
      return descriptor
    }
    return SpoolFile(descriptor: descriptor, share)
  }

  /// Writes `bytes` at `offset`, the end of what was written before.
  func write(_ bytes: ByteBuffer, at offset: Int) async throws {
    guard share.grow(by: bytes.readableBytes) else { throw APIError.overBudget("bodies in files") }
    try await Self.queue.run { [descriptor] in
      try bytes.withUnsafeReadableBytes { raw in
        try DiskQueue.write(raw, to: descriptor, at: offset) { "A body can't be written to its file." }
      }
    }
  }

  /// Reads `count` bytes at `offset`. Blocks: call it where that does no harm.
  func read(at offset: Int, count: Int) throws -> Data {
    var data = Data(count: count)
    var done = 0
    while done < count {
      let step = data.withUnsafeMutableBytes { raw in
        pread(descriptor, raw.baseAddress.map { $0 + done }, count - done, off_t(offset + done))
      }
      if step < 0, errno == EINTR { continue }
      guard step > 0 else { throw DiskQueue.failure("A body can't be read from its file.") }
      done += step
    }
    return data
  }

  /// Reads `count` bytes at `offset`, off the threads that all requests share.
  func part(at offset: Int, count: Int) async throws -> ByteBuffer {
    try await Self.queue.run { ByteBuffer(bytes: try self.read(at: offset, count: count)) }
  }
}
#endif
