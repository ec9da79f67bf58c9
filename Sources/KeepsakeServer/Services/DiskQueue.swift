#if Cloud
import Dispatch
import Foundation
import KeepsakePlatform

/// Where files of bodies are read and written: off the few threads that all requests share.
struct DiskQueue: Sendable {
  private let queue: DispatchQueue

  init(_ label: String) { queue = DispatchQueue(label: label, attributes: .concurrent) }

  /// Runs `work` there. It may block.
  func run<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Swift.Result(catching: work)) }
    }
  }

  /// Writes all of `bytes` at `offset` of an open file. Blocks.
  ///
  /// - Parameter failure: What the error says, if it can't be written.
  static func write(
    _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: Int, failure: () -> String
  ) throws {
    var written = 0
    while written < bytes.count {
      let step = pwrite(
        descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written, off_t(offset + written))
      if step < 0, errno == EINTR { continue }
      guard step > 0 else { throw Self.failure(failure()) }
      written += step
    }
  }

  /// An error with what the system says.
  static func failure(_ message: String) -> ServerError {
    ServerError(.inputOutput, message, cause: PrivateFile.systemError())
  }
}
#endif
