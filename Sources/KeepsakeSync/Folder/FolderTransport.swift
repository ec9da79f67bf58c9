import Foundation
package import KeepsakeReplication

/// The connection to a folder that is a cloud: one that a program syncs between devices (iCloud Drive, Dropbox,
/// Syncthing), a memory stick, or a disk that several computers share.
///
/// `accepted` means that what was sent is in the folder durably; another device gets it when the folder has arrived
/// there and the game runs. Files are read and written on a separate queue.
package actor FolderTransport: Transport {
  /// Time, passed in.
  package struct Environment: Sendable {
    /// Milliseconds since 1970.
    package var now: @Sendable () -> Int64
    package var sleep: @Sendable (Duration) async throws -> Void

    package init(now: @escaping @Sendable () -> Int64, sleep: @escaping @Sendable (Duration) async throws -> Void) {
      self.now = now
      self.sleep = sleep
    }
  }
  private nonisolated let executor = QueueExecutor(label: "keepsake.sync")
  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let cloud: FolderCloud
  private let options: FolderOptions
  /// Between two looks.
  private let pause: Int64
  private let environment: Environment
  private var lastTidied: Int64?

  /// Creates a transport for a folder and the container that it holds.
  ///
  /// - Parameter ownContent: Returns the device's own contents, as full frames; nil for what it doesn't have. Contents
  ///   that the folder lost are stored again from there.
  package init(
    _ folder: FolderPlace, container: ContainerID, options: FolderOptions = FolderOptions(), environment: Environment,
    ownContent: @escaping @Sendable (ContentHash) throws -> EncodedContent?
  ) {
    cloud = FolderCloud(folder, container: container, options: options, ownContent: ownContent)
    self.options = options
    pause = max(options.lookMilliseconds, folder.lookMilliseconds)
    self.environment = environment
  }

  package nonisolated var hasBank: Bool { false }

  package func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse {
    do {
      return try cloud.exchange(request, now: environment.now())
    } catch {
      throw TransportFailure(inFolder: error)
    }
  }

  package func putContent(
    _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) {
    do {
      try cloud.putContent(content)
    } catch {
      throw TransportFailure(inFolder: error)
    }
    let count = Int64(content.bytes.count)
    progress(TransferProgress(bytesDone: count, bytesInAll: count))
  }

  package func getContent(
    _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) -> EncodedContent? {
    do {
      return try cloud.content(hash)
    } catch {
      throw TransportFailure(inFolder: error)
    }
  }

  package nonisolated func events(
    since cursor: @escaping @Sendable () async -> Cursor?
  ) -> AsyncThrowingStream<CloudEvent, any Error> {
    // A newer event contains everything that an older one did.
    AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let task = Task {
        var last: UInt64?
        do {
          while true {
            let seq = try await self.poll()
            if seq != last { continuation.yield(CloudEvent(seq: seq)) }
            last = seq
            try await self.environment.sleep(.milliseconds(self.pause))
          }
        } catch {
          continuation.finish(throwing: TransportFailure(inFolder: error))
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  private func poll() throws -> UInt64 {
    let seq = try cloud.poll()
    let now = environment.now()
    if lastTidied.map({ now - $0 >= options.tidyMilliseconds || now < $0 }) ?? true {
      lastTidied = now
      do {
        try cloud.tidy(now: now)
      } catch {
        // A folder that is read-only or full is tidied by another device, or later: nothing waits for it, and what this
        // device sends reports the problem itself.
      }
    }
    return seq
  }
}
