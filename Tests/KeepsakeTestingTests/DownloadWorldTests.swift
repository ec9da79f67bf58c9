import Foundation
import Keepsake
import KeepsakeSimulation
import KeepsakeTesting
import TestSupport
import Testing

@Archivable struct Scroll: Equatable {
  var text = ""

  /// Random text, which no delta makes small.
  static func long() -> Scroll {
    var random = SeededGenerator(seed: 5)
    return Scroll(text: (0..<60_000).map { _ in String(random.next(), radix: 36) }.joined())
  }
}

/// Downloads that a player requests and cancels.
@Suite(.hangLimit) struct DownloadWorldTests {
  private let scroll = Slot<Scroll>("scroll")

  @Test("a cancelled download ends, leaves no transfer behind and can be requested again")
  func cancelled() async throws {
    let world = TestWorld()
    let (phone, tablet) = (try world.device("phone"), try world.device("tablet"))
    let here = try phone.open("com.example.scrolls")
    let there = try tablet.open("com.example.scrolls", connecting: false)
    there.cloud.downloads = .onDemand(above: 100_000)
    there.cloud.connect(try tablet.address)
    try await here.saves.save(Scroll.long(), to: scroll)
    try await world.settle()
    #expect(try there.saves.list().map(\.isDownloaded) == [false])

    // Nothing arrives until the test advances the clock.
    tablet.network = .slow(bytesPerSecond: 1_000)
    let download = Task { [scroll] in try await there.saves.download(scroll) }
    try await until { there.cloud.status.transfers.contains { !$0.isUpload } }
    #expect(try there.saves.status(of: scroll).arrival == .downloading(fraction: 0))
    download.cancel()
    await #expect(throws: CancellationError.self) { try await download.value }
    try await until { there.cloud.status.transfers.isEmpty }
    #expect(try !there.saves.status(of: scroll).isDownloaded)

    tablet.network = .good
    try await world.settle()
    #expect(try !there.saves.status(of: scroll).isDownloaded, "nothing requests it any more")
    let again = Task { [scroll] in try await there.saves.download(scroll) }
    try await again.value
    let isWhole = try there.saves.load(scroll) == Scroll.long()
    #expect(isWhole)
  }
}
