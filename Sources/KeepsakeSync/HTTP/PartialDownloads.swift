import Foundation
import KeepsakePlatform
import KeepsakeReplication
import Synchronization

/// What was received of a content before its download was interrupted.
struct PartialDownload: Sendable {
  /// Identifies these bytes: the rest may be requested only under the same tag. Nil if the cloud gave none.
  var tag: String?
  /// Plain bytes.
  var length: Int
  var base: ContentHash?
  /// Bytes of the whole frame; nil if the cloud didn't say.
  var total: Int?
  var bytes = Data()

  /// Reads the head of a response that starts from the beginning.
  init(_ response: HTTPURLResponse) throws(TransportFailure) {
    guard let length = response.value(forHTTPHeaderField: "Keepsake-Length").flatMap({ Int($0) }), length >= 0 else {
      throw TransportFailure(.rejected, "The cloud sent a content without its length.")
    }
    if let text = response.value(forHTTPHeaderField: "Keepsake-Base") {
      guard let hash = ContentHash(text) else {
        throw TransportFailure(.rejected, "The cloud sent a content whose base has an invalid hash.")
      }
      base = hash
    }
    self.length = length
    tag = response.value(forHTTPHeaderField: "ETag")
    total = response.expectedContentLength >= 0 ? Int(response.expectedContentLength) : nil
  }

  /// Returns whether a response continues exactly where this ends, with the same bytes.
  func isContinued(by response: HTTPURLResponse) -> Bool {
    guard response.statusCode == 206, let total, let tag, response.value(forHTTPHeaderField: "ETag") == tag else {
      return false
    }
    return response.value(forHTTPHeaderField: "Content-Range") == "bytes \(bytes.count)-\(total - 1)/\(total)"
  }

  /// Whether the rest can be requested.
  var canGoOn: Bool {
    guard let total, tag != nil else { return false }
    return !bytes.isEmpty && bytes.count < total && total <= SyncLimits.contentBytes
  }
}

/// Interrupted downloads, kept in memory until their next attempt, the latest of them up to a limit.
final class PartialDownloads: Sendable {
  private let kept = Mutex<[(hash: ContentHash, download: PartialDownload)]>([])

  /// Removes and returns what was received of a content.
  func take(_ hash: ContentHash) -> PartialDownload? {
    kept.withLock { kept in
      guard let index = kept.firstIndex(where: { $0.hash == hash }) else { return nil }
      return kept.remove(at: index).download
    }
  }

  func keep(_ download: PartialDownload, of hash: ContentHash) {
    guard download.canGoOn else { return }
    kept.withLock { kept in
      kept.removeAll { $0.hash == hash }
      kept.append((hash, download))
      while kept.reduce(0, { $0 + $1.download.bytes.count }) > SyncLimits.keptDownloadBytes { kept.removeFirst() }
    }
  }
}
