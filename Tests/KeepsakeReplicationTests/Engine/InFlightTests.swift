import Foundation
import KeepsakeSimulation
import Testing

@testable import KeepsakeReplication

/// The requests that are in flight at the same time.
struct InFlightTests {
  private func transfer(
    _ request: UInt64, isUpload: Bool, bytes: Int = 10, version: VersionID = VersionID(high: 0, low: 1)
  ) -> Transfer {
    let hash = ContentHash(of: Data([UInt8(request)]))
    let status = EngineTransfer(
      request: request, isUpload: isUpload, content: hash, slot: "main", version: version, length: bytes,
      lengthInAll: bytes)
    return Transfer(
      request: request, isUpload: isUpload, hash: hash, bytes: bytes, marksOffered: isUpload, status: status)
  }

  @Test("request numbers are consecutive from a random one, so that two engines don't confuse their responses")
  func numbers() {
    var random = SeededGenerator(seed: 3)
    var (inFlight, other) = (InFlight(), InFlight())
    let first = inFlight.nextRequest(using: &random)
    #expect(inFlight.nextRequest(using: &random) == first &+ 1)
    #expect(other.nextRequest(using: &random) != first)
  }

  @Test("an exchange ends once, by its number")
  func exchange() {
    var random = SeededGenerator(seed: 3)
    var inFlight = InFlight()
    let request = inFlight.begin(SentExchange(cursor: Cursor(epoch: 1, seq: 7, mark: 0)), using: &random)
    #expect(!inFlight.isIdle)
    #expect(inFlight.finishExchange(request &+ 1) == nil)
    #expect(inFlight.finishExchange(request)?.cursor.seq == 7)
    #expect(inFlight.finishExchange(request) == nil)
    #expect(inFlight.isIdle)
  }

  @Test("a transfer ends once, by its number and direction")
  func transfers() {
    var inFlight = InFlight()
    inFlight.begin(transfer(1, isUpload: true))
    inFlight.begin(transfer(2, isUpload: false))
    #expect(inFlight.finishTransfer(1, isUpload: false) == nil)
    #expect(inFlight.finishTransfer(3) == nil)
    #expect(inFlight.finishTransfer(1, isUpload: true)?.request == 1)
    #expect(inFlight.finishTransfer(1) == nil)
    #expect(inFlight.finishTransfer(2)?.request == 2)
    #expect(inFlight.isIdle)
  }

  @Test("an upload is next whenever fewer uploads than downloads are in flight")
  func taken() {
    var inFlight = InFlight()
    #expect(!inFlight.isUploadNext && !inFlight.isDownloading)
    inFlight.begin(transfer(1, isUpload: false))
    #expect(inFlight.isUploadNext && inFlight.isDownloading)
    inFlight.begin(transfer(2, isUpload: true))
    #expect(!inFlight.isUploadNext)
    #expect(
      inFlight.uploading == [transfer(2, isUpload: true).hash]
        && inFlight.downloading == [transfer(1, isUpload: false).hash])
  }

  @Test("the first content may have any size; beside it others may begin that are small or fit into the limit")
  func room() {
    var options = DeviceEngine.Options()
    (options.maximumTransferBytes, options.smallTransferBytes) = (100, 5)
    var inFlight = InFlight()
    #expect(inFlight.hasRoom(for: 1_000, options))
    inFlight.begin(transfer(1, isUpload: true, bytes: 90))
    #expect(inFlight.hasRoom(for: 10, options) && !inFlight.hasRoom(for: 11, options))
    inFlight.begin(transfer(2, isUpload: true, bytes: 500))
    #expect(inFlight.hasRoom(for: 5, options) && !inFlight.hasRoom(for: 6, options))
  }

  @Test("cancelling ends the downloads that aren't wanted, and no upload")
  func cancelling() {
    var inFlight = InFlight()
    for request in 1...4 as ClosedRange<UInt64> { inFlight.begin(transfer(request, isUpload: request == 1)) }
    #expect(inFlight.cancelDownloads(except: [transfer(3, isUpload: false).hash]) == [2, 4])
    #expect(inFlight.transfers.map(\.request) == [1, 3])
  }

  @Test("once an exchange offers a version, it stays offered whatever becomes of its transfers")
  func offered() {
    var inFlight = InFlight()
    let other = VersionID(high: 0, low: 2)
    inFlight.begin(transfer(1, isUpload: true))
    inFlight.begin(transfer(2, isUpload: true, version: other))
    inFlight.exchangeOffers([other])
    #expect(inFlight.transfers.map(\.marksOffered) == [true, false])
  }
}
