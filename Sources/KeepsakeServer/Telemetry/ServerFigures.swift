#if Cloud
import Dispatch
import Foundation
import KeepsakePlatform
import Synchronization

/// What is measured when somebody reads the metrics: sizes on the disk, the process, queues.
final class ServerFigures: Sendable {
  /// Adding up the files of many contents takes seconds, so it is done at most this often, beside everything else.
  private static let contentsSeconds = 300
  private struct Sums {
    var at: ContinuousClock.Instant?
    var isRunning = false
  }
  private let data: URL
  private let metrics: ServerMetrics
  private let streams: @Sendable () -> Int
  private let queue: @Sendable () -> Int
  private let certificateExpiry: @Sendable () -> Int64?
  private let sums = Mutex(Sums())
  private let background = DispatchQueue(label: "keepsake.cloud.figures", qos: .utility)

  /// - Parameters:
  ///   - data: The data folder.
  ///   - streams: Returns how many event streams are open.
  ///   - queue: Returns how many transactions wait.
  ///   - certificateExpiry: Returns when the certificate expires, in seconds since 1970; nil without TLS.
  init(
    data: URL, metrics: ServerMetrics, streams: @escaping @Sendable () -> Int, queue: @escaping @Sendable () -> Int,
    certificateExpiry: @escaping @Sendable () -> Int64?
  ) {
    (self.data, self.metrics, self.streams, self.queue) = (data, metrics, streams, queue)
    self.certificateExpiry = certificateExpiry
  }

  func update(isReady: Bool) async {
    metrics.set("keepsake_ready", to: isReady ? 1 : 0)
    metrics.set("keepsake_event_streams", to: Double(streams()))
    metrics.set("keepsake_commit_queue", to: Double(queue()))
    if let expiry = certificateExpiry() {
      metrics.set("keepsake_tls_certificate_expires_seconds", to: Double(expiry))
    }
    set("database", Self.size(of: data.appendingPathComponent("cloud.sqlite")))
    set("log", Self.size(of: data.appendingPathComponent("cloud.sqlite-wal")))
    set("free", Self.free(at: data))
    sumContents()
    updateProcess()
  }

  private func set(_ kind: String, _ bytes: Int64?) {
    guard let bytes else { return }
    metrics.set("keepsake_storage_bytes", [("kind", kind)], to: Double(bytes))
  }

  private static func size(of url: URL) -> Int64? { FileStamp(of: url)?.size }

  private static func free(at url: URL) -> Int64? {
    var status = statvfs()
    guard statvfs(url.path, &status) == 0 else { return nil }
    return Int64(clamping: UInt64(status.f_bavail) * UInt64(status.f_frsize))
  }

  /// Adds up the files of contents and uploads in the background; the next reader sees the sums.
  private func sumContents() {
    let isDue = sums.withLock { sums in
      guard !sums.isRunning, sums.at.map({ .now - $0 >= .seconds(Self.contentsSeconds) }) ?? true else { return false }
      sums.isRunning = true
      return true
    }
    guard isDue else { return }
    background.async { [self] in
      for kind in ["contents", "incoming"] {
        let folder = data.appendingPathComponent(kind)
        let files = FileManager.default.enumerator(atPath: folder.path)
        var sum: Int64 = 0
        while let name = files?.nextObject() as? String {
          sum += Self.size(of: folder.appendingPathComponent(name)) ?? 0
        }
        set(kind, sum)
      }
      sums.withLock { $0 = Sums(at: .now) }
    }
  }

  private func updateProcess() {
    guard let process = ProcessResources.current else { return }
    metrics.setTotal("process_cpu_seconds_total", to: process.processorSeconds)
    metrics.set("process_resident_memory_bytes", to: process.residentBytes)
    if let open = process.openDescriptors { metrics.set("process_open_fds", to: Double(open)) }
    if let maximum = process.maximumDescriptors { metrics.set("process_max_fds", to: Double(maximum)) }
  }
}
#endif
