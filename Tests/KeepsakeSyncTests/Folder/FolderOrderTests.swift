import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@testable import KeepsakeSync

/// What programs that carry a folder do to its files: late, in any order, in pieces, twice, under other names, gone.
@Suite("Files of a folder that come as they like") struct FolderOrderTests {
  let folders: CloudFolders
  let folder: URL
  /// Where the first device writes; a test carries its files over one by one.
  let elsewhere: URL

  init() throws {
    folders = try CloudFolders()
    folder = try folders.make()
    elsewhere = try folders.make("elsewhere")
    for path in [folder, elsewhere] {
      try FileManager.default.createDirectory(
        at: path.appendingPathComponent("state"), withIntermediateDirectories: true)
    }
  }

  private func carry(state name: String, as other: String? = nil) throws {
    try FileManager.default.copyItem(
      at: elsewhere.appendingPathComponent("state/\(name)"), to: folder.appendingPathComponent("state/\(other ?? name)")
    )
  }

  private func carryContents() throws {
    try FileManager.default.copyItem(
      at: elsewhere.appendingPathComponent("contents"), to: folder.appendingPathComponent("contents"))
  }

  /// A device that syncs after each of `steps`; the files that each one made, in order.
  private func written(by device: FolderDevice, _ steps: [(FolderDevice) throws -> Void]) throws -> [String] {
    var order: [String] = []
    for step in steps {
      let before = Set(order)
      try step(device)
      #expect(try device.sync() == .idle)
      order += try device.stateFiles.filter { !before.contains($0) }
    }
    return order
  }

  @Test("segments that come last first are shown when the first is here, and all at once")
  func anyOrder() throws {
    let first = try FolderDevice(elsewhere, seed: 1)
    let files = try written(
      by: first, [{ try $0.raise("a", to: 1) }, { try $0.raise("a", to: 2) }, { try $0.raise("a", to: 3) }])
    let second = try FolderDevice(folder, seed: 2)
    for name in files.reversed() {
      #expect(second.value("a") == nil)
      try carry(state: name)
      try second.listen()
    }
    #expect(second.value("a") == 3)
  }

  @Test(
    "what a device sends says nothing of another's checkpoint that it happens to know: that comes as a whole, by itself"
  )
  func nobodyElsesHalf() throws {
    let (first, second) = (try FolderDevice(elsewhere, seed: 1), try FolderDevice(elsewhere, seed: 2))
    let keys = ["x", "y"].map { CellKey(collection: "progress", key: $0) }
    try second.raise("x", to: 3)
    let files = try written(
      by: first, [{ try $0.commit(CommitDraft(cells: keys.map { CellDraft($0, .max(.int(5))) })) }])
    #expect(try second.sync() == .idle)
    #expect(second.value("x") == 5)
    let third = try FolderDevice(folder, seed: 3)
    for name in try second.stateFiles where !files.contains(name) { try carry(state: name) }
    try third.sync()
    #expect(third.value("x") == 3 && third.value("y") == nil)
    try carry(state: files[0])
    try third.listen()
    #expect(third.value("x") == 5 && third.value("y") == 5)
  }

  @Test("the name of a segment means nothing: copies, conflicted copies and other spellings are taken once")
  func names() throws {
    let first = try FolderDevice(elsewhere, seed: 1)
    let files = try written(by: first, [{ try $0.raise("a", to: 1) }, { try $0.raise("a", to: 2) }])
    try carry(state: files[0], as: "\(files[0]) (conflicted copy 2)")
    try carry(state: files[0], as: files[0].uppercased())
    try carry(state: files[0], as: files[1])
    try carry(state: files[1], as: ".~tmp.\u{301}e")
    let second = try FolderDevice(folder, seed: 2)
    try second.sync()
    #expect(second.value("a") == 2)
    #expect(second.answers.flatMap(\.changes).count == 1)
    // What came under a false name is replaced by what belongs there.
    try FileManager.default.removeItem(at: second.state(files[1]))
    try carry(state: files[1])
    try second.listen()
    #expect(second.value("a") == 2)
  }

  @Test("half of a segment, at any length, is no segment; the rest comes, and it is one")
  func halves() throws {
    let first = try FolderDevice(elsewhere, seed: 1)
    let files = try written(by: first, [{ try $0.raise("a", to: 1) }])
    let whole = try Data(contentsOf: first.state(files[0]))
    let second = try FolderDevice(folder, seed: 2)
    for length in stride(from: 0, to: whole.count, by: 7) {
      try whole.prefix(length).write(to: second.state(files[0]))
      try second.listen()
      #expect(second.value("a") == nil, "\(length)")
    }
    try whole.write(to: second.state(files[0]))
    try second.listen()
    #expect(second.value("a") == 1)
  }

  @Test("a save is shown when its contents are here; what doesn't need them isn't held up by another device's")
  func contentsLater() throws {
    let first = try FolderDevice(elsewhere, seed: 1)
    let files = try written(
      by: first,
      [
        {
          try $0.save("one")
          try $0.raise("a", to: 1)
        }
      ])
    let (second, third) = (try FolderDevice(folder, seed: 2), try FolderDevice(folder, seed: 3))
    try carry(state: files[0])
    try third.raise("b", to: 1)
    try third.sync()
    try second.sync()
    // The save and the value belong together.
    #expect(second.value("a") == nil && second.texts() == [] && second.value("b") == 1)
    // Half a content.
    let whole = try Data(contentsOf: first.contentFile("one"))
    let place = second.contentFile("one")
    try FileManager.default.createDirectory(at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
    try whole.dropLast().write(to: place)
    try second.listen()
    #expect(second.value("a") == nil)
    try (whole.dropLast() + [0]).write(to: place)
    try second.listen()
    #expect(second.value("a") == nil)
    try whole.write(to: place)
    try second.listen()
    #expect(
      second.value("a") == 1 && second.texts() == ["one"]
        && second.notifications.allSatisfy { if case .damaged = $0 { false } else { true } })
  }

  @Test("contents that never come hold up a save until the next one replaces it")
  func contentsNever() throws {
    let first = try FolderDevice(elsewhere, seed: 1)
    // One that the storage of these tests doesn't make a delta of.
    let two = try #require((0..<100).map { "two \($0)" }.first { ContentHash(of: Data($0.utf8)).bytes[0] & 3 == 0 })
    let files = try written(by: first, [{ try $0.save("lost") }, { try $0.raise("a", to: 1) }, { try $0.save(two) }])
    let second = try FolderDevice(folder, seed: 2)
    for name in files.dropLast() { try carry(state: name) }
    try second.sync()
    #expect(second.value("a") == nil && second.texts() == [])
    try carryContents()
    try FileManager.default.removeItem(at: second.contentFile("lost"))
    try second.listen()
    #expect(second.value("a") == nil)
    try carry(state: files[2])
    try second.listen()
    #expect(second.value("a") == 1 && second.texts() == [two])
  }

  @Test("a delta whose base isn't here counts as not here")
  func basesToo() throws {
    let first = try FolderDevice(elsewhere, seed: 1)
    var texts: [String] = []
    // The storage of these tests makes deltas of about three in four.
    let files = try written(by: first, (0..<6).map { number in { try $0.save("text \(number)") } })
    for number in 0..<6 { texts.append("text \(number)") }
    let deltas = try texts.filter { text in
      try ContentFile.decoded(Data(contentsOf: first.contentFile(text)))?.base != nil
    }
    try #require(deltas.count > 1)
    for name in files { try carry(state: name) }
    try carryContents()
    let second = try FolderDevice(folder, seed: 2)
    let last = texts[5]
    let base = try #require(try ContentFile.decoded(Data(contentsOf: first.contentFile(last)))?.base)
    let place = URL(fileURLWithPath: FolderLayout(folder).content(base))
    let bytes = try Data(contentsOf: place)
    try FileManager.default.removeItem(at: place)
    try second.sync()
    #expect(second.texts() != [last])
    try bytes.write(to: place)
    try second.listen()
    #expect(second.texts() == [last])
  }

  @Test("a delta against what isn't in the folder is refused, and what is there as a whole stays as it is")
  func puts() throws {
    let device = try FolderDevice(folder, seed: 1)
    let (base, whole) = (ContentHash(of: Data("base".utf8)), Data("whole".utf8))
    let delta = EncodedContent(hash: ContentHash(of: whole), length: 5, base: base, bytes: whole)
    #expect { try device.cloud.putContent(delta) } throws: { ($0 as? TransportFailure)?.kind == .rejected }
    try device.cloud.putContent(EncodedContent(hash: base, length: 4, base: nil, bytes: Data("base".utf8)))
    try device.cloud.putContent(delta)
    var other = delta
    other.base = nil
    try device.cloud.putContent(other)
    #expect(try device.cloud.content(delta.hash) == delta)
  }

  @Test("contents that a head needs and the folder lost are put there again by whoever has them")
  func putAgain() throws {
    let first = try FolderDevice(folder, seed: 1)
    try first.save("one")
    try first.sync()
    let second = try FolderDevice(folder, seed: 2)
    let place = first.contentFile("one")
    for damage in [nil, Data(), Data("keepsake-content 1 nonsense\n".utf8), try Data(contentsOf: place).dropLast(2)]
      as [Data?]
    {
      try FileManager.default.removeItem(at: place)
      if let damage { try damage.write(to: place) }
      try first.sync()
      try first.cloud.tidy(now: first.now)
      #expect(try ContentFile.decoded(Data(contentsOf: place))?.length == 3)
    }
    try second.sync()
    #expect(second.texts() == ["one"])
  }
}
