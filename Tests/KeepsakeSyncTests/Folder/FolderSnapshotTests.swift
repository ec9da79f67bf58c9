import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@testable import KeepsakeSync

/// How a folder stays small, and what must never be removed from it.
@Suite("Snapshots of a folder, and what they replace") struct FolderSnapshotTests {
  private static let day: Int64 = 86_400_000
  let folders: CloudFolders
  let folder: URL
  let options: FolderOptions

  init() throws {
    folders = try CloudFolders()
    folder = try folders.make()
    var options = FolderOptions()
    options.segmentsBeforeSnapshot = 4
    self.options = options
  }

  private func device(_ seed: UInt64) throws -> FolderDevice { try FolderDevice(folder, seed: seed, options: options) }

  /// Saves and syncs, each time in a segment of its own.
  private func play(_ device: FolderDevice, _ numbers: ClosedRange<Int>) throws {
    for number in numbers {
      try device.raise("level", to: Int64(number))
      try device.save("save \(number)")
      #expect(try device.sync() == .idle)
    }
  }

  private func setDate(_ file: URL, _ milliseconds: Int64) throws {
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: Double(milliseconds) / 1000)], ofItemAtPath: file.path)
  }

  @Test("after some segments everything is written as a snapshot, which is all that a later device needs")
  func snapshot() throws {
    let (first, second) = (try device(1), try device(2))
    try play(first, 1...5)
    #expect(try first.stateFiles.count == 6)
    // No device has confirmed that it has the snapshot: nothing is removed.
    try first.cloud.tidy(now: first.now)
    #expect(try first.stateFiles.count == 6)
    try second.sync()
    try first.cloud.tidy(now: first.now)
    #expect(try first.stateFiles.count == 6)
    try second.raise("other", to: 1)
    try second.sync()
    try first.listen()
    let before = try first.stateFiles
    var bytes: [String: Data] = [:]
    for name in before { bytes[name] = try Data(contentsOf: first.state(name)) }
    try first.cloud.tidy(now: first.now)
    #expect(try first.stateFiles.count == 2)

    let third = try device(3)
    try third.sync()
    #expect(third.texts() == ["save 5"] && third.value("level") == 5 && third.value("other") == 1)
    #expect(third.view == first.view)
    // Both go on from there, also after a restart, and nothing is written again.
    for device in [first, second] {
      try device.reopen()
      try device.sync()
      #expect(!device.answers.contains { $0.restart })
    }
    #expect(try first.stateFiles.count == 2)
    // A sync program may restore what was removed: it changes nothing, and is removed again.
    for (name, data) in bytes { try data.write(to: first.state(name)) }
    try first.listen()
    try third.listen()
    #expect(third.view == first.view)
    try first.cloud.tidy(now: first.now)
    #expect(try first.stateFiles.count == 2)
    try play(first, 6...6)
    try second.listen()
    #expect(second.value("level") == 6)
  }

  @Test("a device that was offline can continue from a removed segment, and newer devices receive its changes")
  func away() throws {
    let (first, second) = (try device(1), try device(2))
    try second.raise("other", to: 1)
    try second.sync()
    try first.sync()
    try play(first, 1...5)
    let third = try device(3)
    try third.sync()
    try third.raise("third", to: 1)
    try third.sync()
    try first.listen()
    try first.cloud.tidy(now: first.now)
    #expect(try first.stateFiles.count == 2)
    // Its only segment is gone, but the snapshot names it.
    try second.reopen()
    try second.raise("other", to: 2)
    try second.sync()
    #expect(!second.answers.contains { $0.restart })
    #expect(second.value("level") == 5)
    let fourth = try device(4)
    try fourth.sync()
    #expect(fourth.value("other") == 2 && fourth.value("third") == 1 && fourth.texts() == ["save 5"])
  }

  @Test("a snapshot also names what earlier snapshots replaced, so a device offline for longer can still continue")
  func awayForLonger() throws {
    let (first, second, away) = (try device(1), try device(2), try device(3))
    try away.raise("away", to: 1)
    try away.sync()
    try second.sync()
    try play(first, 1...5)
    try second.sync()
    try second.raise("other", to: 1)
    try second.sync()
    try first.listen()
    try first.cloud.tidy(now: first.now)
    // From here on it knows of the removed segments only from the snapshot.
    try second.reopen()
    try second.sync()
    try play(second, 6...9)
    try first.listen()
    try play(first, 10...10)
    try second.listen()
    try second.cloud.tidy(now: second.now)
    #expect(try first.stateFiles.count == 2)
    try away.reopen()
    try away.raise("away", to: 2)
    try away.sync()
    #expect(!away.answers.contains { $0.restart })
    let late = try device(4)
    try late.sync()
    #expect(late.value("away") == 2 && late.texts() == ["save 10"])
  }

  @Test("in a folder with a single device, replaced segments are removed after seven days")
  func alone() throws {
    let first = try device(1)
    try play(first, 1...5)
    let snapshot = try #require(first.cloud.ownChain().first)
    try setDate(first.state("\(snapshot)"), first.now)
    try first.listen()
    try first.cloud.tidy(now: first.now + options.snapshotMilliseconds)
    #expect(try first.stateFiles.count == 6)
    try first.cloud.tidy(now: first.now + options.snapshotMilliseconds + 1)
    #expect(try first.stateFiles == ["\(snapshot)"])
    try first.reopen()
    try play(first, 6...11)
    let second = try device(2)
    try second.sync()
    #expect(second.view == first.view)
    #expect(!first.answers.contains { $0.restart })
  }

  @Test("a device that loses the response to its snapshot still receives what the snapshot contains of others")
  func lostAnswer() throws {
    let (first, second) = (try device(1), try device(2))
    try play(first, 1...4)
    try second.raise("other", to: 7)
    try second.sync()
    try first.raise("level", to: 50)
    first.losesAnswer = true
    try first.sync()
    #expect(first.value("other") == nil)
    #expect(try first.stateFiles.count == 7)
    try first.sync()
    #expect(first.value("other") == 7)
    try first.reopen()
    try first.sync()
    try second.listen()
    #expect(first.view == second.view)
  }

  @Test("unneeded contents are removed after 30 days; those of heads, of what they replaced, and their bases are kept")
  func contents() throws {
    let (first, second) = (try device(1), try device(2))
    try play(first, 1...5)
    let now = first.now + 100 * Self.day
    func put(_ text: String) throws -> URL {
      try first.cloud.putContent(
        EncodedContent(
          hash: ContentHash(of: Data(text.utf8)), length: text.utf8.count, base: nil, bytes: Data(text.utf8)))
      return first.contentFile(text)
    }
    let (old, young) = (try put("old"), try put("young"))
    let partial = old.deletingLastPathComponent().appendingPathComponent(".x.1.a.partial")
    try Data([1]).write(to: partial)
    let chain = (1...5).map { number in first.contentFile("save \(number)") }
    // A text that the simulated storage doesn't encode as a delta, so that what it replaces isn't its base.
    let last = try #require((0..<100).map { "last \($0)" }.first { ContentHash(of: Data($0.utf8)).bytes[0] & 3 == 0 })
    try first.save(last)
    try first.sync()
    for file in chain + [old, partial] { try setDate(file, now - 31 * Self.day) }
    try setDate(young, now - 29 * Self.day)
    let snapshot = try #require(first.cloud.ownChain().first { first.cloud.links[$0]?.isSnapshot == true })
    try setDate(first.state("\(snapshot)"), now - 8 * Self.day)
    try first.listen()
    try first.cloud.tidy(now: now)
    let isThere = { (file: URL) in FileManager.default.fileExists(atPath: file.path) }
    #expect(!isThere(old) && !isThere(partial) && isThere(young))
    #expect(isThere(chain[4]))
    try second.sync()
    #expect(second.texts() == [last])
    // A removed content is written again when a save needs it.
    try first.save("old")
    try first.sync()
    #expect(isThere(old))
    try second.listen()
    #expect(second.texts() == ["old"])
  }

  @Test("no snapshot is written while a head's content is lost, and a device that shows the head takes what follows")
  func lostContent() throws {
    let (first, second) = (try device(1), try device(2))
    try first.save("lost", slot: "other")
    try first.sync()
    try second.sync()
    #expect(second.texts("other") == ["lost"])
    // As if nobody had it any more who could store it again: nobody tidies up.
    try FileManager.default.removeItem(at: first.contentFile("lost"))
    try play(first, 1...6)
    #expect(!first.cloud.ownChain().contains { first.cloud.links[$0]?.isSnapshot == true })
    try second.reopen()
    try second.sync()
    #expect(second.texts() == ["save 6"])
    let third = try device(3)
    try third.sync()
    #expect(third.texts("other") == [])
  }

  @Test("a segment with a head that is shown already needs none of its contents, one that shows it does")
  func shownHead() throws {
    let version = VersionRecord(
      id: VersionID(high: 1, low: 1), slot: "main", covers: [], contents: [ContentHash(of: Data("x".utf8))], length: 1,
      savedAtMilliseconds: 5, writer: WriterID(1), provisional: false)
    func segment(_ seen: [SegmentHash]) throws -> [SegmentHash: StateSegment] {
      let links = StateSegment.Links(previous: nil, seen: seen, replaces: [])
      let segment = try StateSegment.encoded(FolderDevice.container, links, cells: [], versions: [version]).segment
      return [segment.hash: segment]
    }
    var replica = FolderReplica(FolderDevice.container, startingAt: .start, tip: nil)
    let first = try segment([])
    #expect(try replica.apply(first) { _ in false }.applied == [])
    #expect(try replica.apply(first) { _ in true }.applied == Array(first.keys))
    let again = try segment(Array(first.keys))
    #expect(try replica.apply(again) { _ in false }.applied == Array(again.keys))
  }

  @Test("contents of a segment that can't be applied yet are kept, however old they are, until an earlier one arrives")
  func contentsOfWaiting() throws {
    let first = try device(1)
    try play(first, 1...5)
    let elsewhere = try FolderDevice(folders.make("elsewhere"), seed: 2, options: options)
    try elsewhere.raise("other", to: 1)
    try elsewhere.sync()
    let earlier = try #require(try elsewhere.stateFiles.first)
    try elsewhere.save("early", slot: "other")
    try elsewhere.sync()
    let later = try #require(try elsewhere.stateFiles.first { $0 != earlier })
    func carry(_ file: URL, to place: URL) throws {
      try FileManager.default.createDirectory(at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
      try FileManager.default.copyItem(at: file, to: place)
    }
    let content = first.contentFile("early")
    try carry(elsewhere.contentFile("early"), to: content)
    try carry(elsewhere.state(later), to: first.state(later))
    let now = first.now + 100 * Self.day
    try setDate(content, now - 31 * Self.day)
    let snapshot = try #require(first.cloud.ownChain().first)
    try setDate(first.state("\(snapshot)"), now - 8 * Self.day)
    try first.listen()
    #expect(first.texts("other") == [])
    try first.cloud.tidy(now: now)
    #expect(try first.stateFiles == ["\(snapshot)", later].sorted())
    try carry(elsewhere.state(earlier), to: first.state(earlier))
    try first.listen()
    #expect(first.texts("other") == ["early"] && first.value("other") == 1)
    #expect(first.texts() == ["save 5"])
  }
}
