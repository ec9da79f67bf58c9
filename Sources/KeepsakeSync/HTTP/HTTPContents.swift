import Foundation
import KeepsakePlatform
import KeepsakeReplication
import Synchronization

/// Transfers contents over HTTP. An interrupted transfer is resumed where it stopped: immediately if it had made
/// progress, else with its next attempt.
final class HTTPContents: Sendable {
  private enum Step {
    case stored
    /// The cloud has this many bytes of the frame.
    case received(Int)
    /// The cloud has fewer bytes than this device assumed, or other ones.
    case setBack(to: Int)
  }
  private struct Received: Decodable {
    var received: Int?
    var stored: ContentHash?
  }
  private let credentials: RenewableCredentials
  private let session: HTTPSession
  /// Frames whose upload was interrupted.
  private let brokenOff = Mutex<Set<ContentHash>>([])
  private let downloads = PartialDownloads()
  private let room = Mutex<QuotaUse?>(nil)
  /// The cloud isn't the same as before, and it isn't known which of the device's contents it still has.
  private let isUncertain = Atomic(false)

  init(_ credentials: RenewableCredentials, _ session: HTTPSession) {
    self.credentials = credentials
    self.session = session
  }

  /// Records that the cloud has responded, and how much room it reports for the player.
  func didReceive(_ use: QuotaUse?) {
    room.withLock { $0 = use }
    isUncertain.store(false, ordering: .releasing)
  }

  /// Records that the device uploads everything once more before the next exchange. Large uploads ask first how much
  /// the cloud has, because it has most contents already.
  func cloudDidRestart() { isUncertain.store(true, ordering: .releasing) }

  // MARK: Up

  func put(
    _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) {
    guard content.bytes.count > SyncLimits.wholeUploadBytes else {
      let answer = try await session.send(
        put(of: content), body: content.bytes, limit: SyncLimits.accountBytes, sent: progress)
      return try HTTPAnswer.check(answer.response, body: answer.body)
    }
    let report = Highest(content.bytes.count, progress)
    let frame = ContentHash(of: content.bytes)
    do throws(TransportFailure) {
      try await putInParts(content, frame, report)
      brokenOff.withLock { _ = $0.remove(frame) }
      report.update(content.bytes.count)
    } catch {
      brokenOff.withLock { frames in
        if frames.count >= SyncLimits.rememberedUploads { frames.removeAll() }
        frames.insert(frame)
      }
      throw error
    }
  }

  private func putInParts(_ content: EncodedContent, _ frame: ContentHash, _ report: Highest)
    async throws(TransportFailure)
  {
    var offset = 0
    // If the frame may not fit, the cloud is asked first: it makes room if it can, or refuses before anything is sent.
    let isTight = room.withLock { $0?.shortage(for: Int64(content.bytes.count)) != nil }
    if isTight || isUncertain.load(ordering: .acquiring) || brokenOff.withLock({ $0.contains(frame) }) {
      guard let received = try await received(of: content, frame) else { return }
      offset = received
    }
    var setbacks = 0
    while true {
      let step: Step
      do throws(TransportFailure) {
        step = try await putPart(of: content, frame, from: offset, report)
      } catch {
        // Interrupted in the middle of a part: what arrived of it counts.
        guard error.kind == .interrupted, !Task.isCancelled else { throw error }
        let received: Int?
        do throws(TransportFailure) {
          received = try await self.received(of: content, frame)
        } catch _ {
          throw error
        }
        guard let received else { return }
        guard received >= offset + SyncLimits.leastProgressBytes else { throw error }
        offset = received
        continue
      }
      switch step {
      case .stored:
        return
      case .received(let count):
        guard count > offset else {
          throw TransportFailure(.interrupted, "The cloud accepted no bytes of an uploaded part.")
        }
        offset = count
      case .setBack(let count):
        setbacks += 1
        guard setbacks <= SyncLimits.uploadSetbacks else {
          throw TransportFailure(.interrupted, "The cloud keeps losing the uploaded parts of a content.")
        }
        offset = count
      }
    }
  }

  /// Sends the part that begins at `offset`. If the cloud has everything but hasn't completed the upload, the last byte
  /// is sent again.
  private func putPart(
    of content: EncodedContent, _ frame: ContentHash, from offset: Int, _ report: Highest
  ) async throws(TransportFailure) -> Step {
    let total = content.bytes.count
    let first = min(offset, total - 1)
    let part = content.bytes.dropFirst(first).prefix(SyncLimits.uploadPartBytes)
    var message = put(of: content)
    message.setValue(frame.description, forHTTPHeaderField: "Keepsake-Frame")
    message.setValue("bytes \(first)-\(first + part.count - 1)/\(total)", forHTTPHeaderField: "Content-Range")
    let onProgress: @Sendable (TransferProgress) -> Void = { report.update(first + Int(clamping: $0.bytesDone)) }
    let answer = try await session.send(message, body: Data(part), limit: SyncLimits.accountBytes, sent: onProgress)
    switch (answer.response.statusCode, HTTPAnswer.code(answer.body)) {
    case (409, "wrong_offset"):
      guard let received = HTTPAnswer.received(answer.body) else { break }
      return .setBack(to: try count(received, of: total))
    case (422, "frame_mismatch"):
      return .setBack(to: 0)
    case (409, "superseded"):
      throw TransportFailure(.interrupted, "Another request continues this upload.")
    default:
      break
    }
    try HTTPAnswer.check(answer.response, body: answer.body)
    guard answer.response.statusCode == 202 else { return .stored }
    let received = try HTTPAnswer.decode(Received.self, answer.body).received
    return .received(try count(received, of: total))
  }

  /// Returns how much of a frame the cloud has; nil if it has the content.
  private func received(of content: EncodedContent, _ frame: ContentHash) async throws(TransportFailure) -> Int? {
    var message = HTTPRequests.request("GET", credentials.current, "v1/contents/\(content.hash)/upload")
    message.setValue(frame.description, forHTTPHeaderField: "Keepsake-Frame")
    message.setValue(String(content.bytes.count), forHTTPHeaderField: "Keepsake-Total")
    let answer = try await session.send(message, limit: SyncLimits.accountBytes)
    try HTTPAnswer.check(answer.response, body: answer.body)
    let state = try HTTPAnswer.decode(Received.self, answer.body)
    if state.stored == content.hash { return nil }
    return try count(state.received, of: content.bytes.count)
  }

  private func count(_ received: Int?, of total: Int) throws(TransportFailure) -> Int {
    guard let received, (0...total).contains(received) else {
      throw TransportFailure(.rejected, "The cloud's response doesn't state correctly how much of a content it has.")
    }
    return received
  }

  private func put(of content: EncodedContent) -> URLRequest {
    var message = HTTPRequests.request("PUT", credentials.current, "v1/contents/\(content.hash)")
    message.setValue("application/zstd", forHTTPHeaderField: "Content-Type")
    message.setValue(String(content.length), forHTTPHeaderField: "Keepsake-Length")
    if let base = content.base { message.setValue(base.description, forHTTPHeaderField: "Keepsake-Base") }
    return message
  }

  // MARK: Down

  func get(
    _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) -> EncodedContent? {
    while true {
      let known = downloads.take(hash)
      var message = HTTPRequests.request("GET", credentials.current, "v1/contents/\(hash)")
      if let known, let tag = known.tag {
        message.setValue("bytes=\(known.bytes.count)-", forHTTPHeaderField: "Range")
        message.setValue(tag, forHTTPHeaderField: "If-Range")
      }
      let offset = Int64(known?.bytes.count ?? 0)
      let report: @Sendable (TransferProgress) -> Void = { step in
        // If the response starts from the beginning, this reports too much, until the next attempt.
        progress(TransferProgress(bytesDone: offset + step.bytesDone, bytesInAll: step.bytesInAll.map { $0 + offset }))
      }
      let (answer, failure) = await session.collect(message, limit: SyncLimits.contentBytes, received: report)
      guard let answer, failure == nil || [200, 206].contains(answer.response.statusCode) else {
        // Nothing arrived, or half of a refusal, which doesn't count as one.
        if let known { downloads.keep(known, of: hash) }
        throw failure ?? TransportFailure(.interrupted, "The response has no headers.")
      }
      let status = answer.response.statusCode
      if status == 404, HTTPAnswer.code(answer.body) == "content_missing" { return nil }
      // The content is shorter than what was kept of it, so it is another encoding by now.
      if status == 416, known != nil { continue }
      try HTTPAnswer.check(answer.response, body: answer.body)
      var download: PartialDownload
      if let known, known.isContinued(by: answer.response) {
        download = known
      } else {
        guard status != 206 else {
          throw TransportFailure(.rejected, "The cloud sent another part of a content than was requested.")
        }
        download = try PartialDownload(answer.response)
      }
      download.bytes.append(answer.body)
      guard let failure else {
        guard download.bytes.count == download.total ?? download.bytes.count else {
          throw TransportFailure(.interrupted, "The content ended early.")
        }
        return EncodedContent(hash: hash, length: download.length, base: download.base, bytes: download.bytes)
      }
      let goesOn =
        failure.kind == .interrupted && download.canGoOn && answer.body.count >= SyncLimits.leastProgressBytes
      downloads.keep(download, of: hash)
      if !goesOn || Task.isCancelled { throw failure }
    }
  }

  /// Reports how far an upload has come, never less than before.
  private final class Highest: Sendable {
    private let total: Int
    private let progress: @Sendable (TransferProgress) -> Void
    private let reported = Mutex(0)

    init(_ total: Int, _ progress: @escaping @Sendable (TransferProgress) -> Void) {
      self.total = total
      self.progress = progress
    }

    func update(_ bytes: Int) {
      let isNewer = reported.withLock { reported in
        guard bytes > reported else { return false }
        reported = bytes
        return true
      }
      if isNewer { progress(TransferProgress(bytesDone: Int64(min(bytes, total)), bytesInAll: Int64(total))) }
    }
  }
}
