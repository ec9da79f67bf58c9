#if Cloud && os(Linux)
import Foundation
import Keepsake
import Synchronization
import TestSupport
import Testing

// A player's quota, which another of the player's devices uses up while a transfer of the phone is held.
extension FaultStage {
  /// How room is made again.
  enum Remedy: Sendable {
    case deletedElsewhere, deletedHere
    case raised(to: Int64)

    /// Only by its own delete does a device learn before its next poll that there is room.
    var needsPoll: Bool { if case .deletedHere = self { false } else { true } }
  }

  /// Small at first, because what fills it has to be downloaded by the other devices, too.
  static let firstQuota: Int64 = 500_000
  /// Room for two large saves (which may be the ones before and after a replacement), and some to be used up.
  private static let secondQuota: Int64 = 7_200_000
  /// Room for one more large save.
  private static let thirdQuota: Int64 = 10_700_000
  /// The size of a value that exceeds the quota by about half of this.
  private static let overflowBytes: Int64 = 120_000
  /// Roughly what the records of a matrix cell's saves and deletes and its values take. It is exact enough if the error
  /// of all cells together is less than half of `overflowBytes`.
  private static let recordBytes: Int64 = 800

  /// All kinds of transfers. Only new saves are refused, at every point where the cloud can find that there is no room
  /// for them.
  static let underQuota: [Transfer] =
    eachKind.filter { [.smallExchange, .events, .registering, .joining].contains($0.kind) } + [
      Transfer(
        kind: .checkpoint, name: "checkpoint of a value and a save", request: exchange, point: .insideRequest,
        place: "half of the request",
        remedy: .deletedHere),
      Transfer(
        kind: .inlineExchange, name: "exchange with a save", request: exchange, point: .insideRequest,
        place: "half of the request",
        remedy: .deletedElsewhere),
      Transfer(
        kind: .inlineExchange, name: "exchange with a save", request: exchange, point: .beforeAnswer,
        place: "before the response"),
      Transfer(
        kind: .inlineExchange, name: "exchange with a save", request: exchange, point: .insideRequest,
        place: "half of the request",
        remedy: .raised(to: secondQuota)),
    ] + eachKind.filter { $0.kind == .download } + [
      upload("PUT " + contents, .insideRequest, "half of the second part", skipping: 1, .deletedElsewhere),
      upload("PUT " + contents, .beforeAnswer, "before a part's response", .deletedHere),
      upload("PUT " + contents, .insideRequest, "half of the last part", skipping: largeBytes >> 20, .deletedElsewhere),
      upload(exchange, .insideRequest, "half of the exchange after the last part", .deletedHere),
      upload("PUT " + contents, .insideRequest, "half of the second part", skipping: 1, .raised(to: thirdQuota)),
    ]

  private static func upload(
    _ request: String, _ point: WatchingProxy.Point, _ place: String, skipping: Int = 0, _ remedy: Remedy
  ) -> Transfer {
    Transfer(
      kind: .upload, name: "upload in parts", request: request, point: point, place: place, skipping: skipping,
      remedy: remedy)
  }

  private static let ballast = Slot<Chapter>("ballast")
  private static let overflow = ProgressKey("overflow", default: "", rule: .latest)

  // MARK: Using up the quota

  /// The tablet saves until almost no room is left, and then sets a value, which is accepted though it exceeds the
  /// quota.
  func useUpQuota(in transfer: Transfer, _ number: Int) async throws {
    let lasting = lasting(upTo: number - 1)
    var held = Int64(number) * Self.recordBytes
    if lasting["middle"] != nil { held += Int64(Self.inlineBytes) }
    if lasting["large"] != nil { held += Int64(Self.largeBytes) }
    switch (transfer.kind, transfer.request) {
    // The new save's contents are in the cloud already, beside those that it will replace; or it has replaced those,
    // which are deleted when room is needed.
    case (.upload, Self.exchange): held += Int64(Self.largeBytes)
    case (.download, _) where lasting["large"] == nil: held += Int64(Self.largeBytes)
    default: break
    }
    let quota = try #require(quota.withLock { $0 })
    let left = quota - held - Self.overflowBytes / 2
    try #require(left > 0)
    try await tablet.game.saves.save(Chapter(number, bytes: Int(left)), to: Self.ballast)
    try await tablet.until("filling the cloud") { try $0.isQuiet }
    try await tablet.game.progress.set(String(repeating: "+", count: Int(Self.overflowBytes)), for: Self.overflow).value
    try await tablet.until("using up the quota") { try $0.isQuiet }
    #expect(tablet.game.cloud.status.refusals.isEmpty)
  }

  /// Makes room for what was refused.
  func makeRoom(by remedy: Remedy, _ number: Int) async throws {
    switch remedy {
    case .deletedElsewhere:
      _ = try tablet.game.saves.delete(Self.ballast)
      try await tablet.until("deleting") { try $0.isQuiet }
    case .deletedHere:
      // A delete replaces only what its device has seen.
      try await phone.until("seeing the save that fills the cloud") {
        try $0.game.saves.load(Self.ballast)?.number == number
      }
      _ = try phone.game.saves.delete(Self.ballast)
    case .raised(let bytes):
      try await raiseQuota(to: bytes)
    }
  }

  /// Frees the quota for the next cell of the matrix.
  func freeQuota() async throws {
    try await settle([phone, tablet])
    if try tablet.game.saves.load(Self.ballast) != nil { _ = try tablet.game.saves.delete(Self.ballast) }
    try await tablet.game.progress.set("", for: Self.overflow).value
    // Otherwise the next cell's save might be sent, and refused, before the quota is free.
    try await tablet.until("freeing the quota") { try $0.isQuiet }
  }

  // MARK: The refusal

  /// Waits for the refusal, checks its numbers and that everything else continues, and returns a description.
  func tellRefusal(to subject: PlayedDevice, of transfer: Transfer, _ number: Int, _ what: String) async throws
    -> String
  {
    try await subject.until("reporting the refusal, with nothing else waiting") {
      let status = $0.game.cloud.status
      return status.phase == .upToDate && !status.refusals.isEmpty && status.waitingCommits == 1
    }
    let status = subject.game.cloud.status
    let refusal = try #require(status.refusals.first)
    let (slot, needed) = Self.expected(transfer)
    #expect(status.refusals.count == 1, "\(what): \(status)")
    #expect(
      refusal.reason == .quota && refusal.slot == slot.name && refusal.message.contains("delete saves"),
      "\(what): \(refusal)")
    let numbers = try #require(refusal.quota)
    #expect(numbers.limit == quota.withLock { $0 } && needed.contains(numbers.needed), "\(what): \(numbers)")
    #expect((numbers.limit...numbers.limit + Self.overflowBytes).contains(numbers.used), "\(what): \(numbers)")

    // The refused save is on this device and not on the other, and values sync in both directions, that of the
    // checkpoint too.
    #expect(try subject.game.saves.load(slot)?.number == number, "\(what)")
    #expect(try tablet.game.saves.load(slot)?.number == lasting(upTo: number - 1)[slot.name], "\(what)")
    if transfer.kind == .checkpoint {
      try await tablet.until("the checkpoint's value") { $0.game.progress[Self.key("level")] == number }
    }
    try await subject.game.progress.record(number, for: Self.key("phone")).value
    try await tablet.until("a value from the phone") { $0.game.progress[Self.key("phone")] == number }
    try await tablet.game.progress.record(number, for: Self.key("tablet")).value
    try await subject.until("a value from the tablet") { $0.game.progress[Self.key("tablet")] == number }
    #expect(subject.game.cloud.status.refusals.map(\.slot) == [slot.name], "\(what)")
    return "refused: \(numbers.used) of \(numbers.limit) bytes, \(numbers.needed) more needed"
  }

  private static func key(_ name: String) -> ProgressKey<Int> { ProgressKey(name, default: 0, rule: .max) }

  /// The slot that is refused, and the bytes that it needs: incompressible contents, and a record.
  private static func expected(_ transfer: Transfer) -> (Slot<Chapter>, ClosedRange<Int64>) {
    let (inline, large) = (Int64(inlineBytes), Int64(largeBytes))
    switch (transfer.kind, transfer.request) {
    case (.checkpoint, _): return (Slot("small"), 1...2_000)
    case (.inlineExchange, _): return (Slot("middle"), inline...inline + 2_000)
    // The contents are in the cloud already.
    case (_, exchange): return (Slot("large"), 1...2_000)
    default: return (Slot("large"), large...large + 2_000)
    }
  }
}
#endif
