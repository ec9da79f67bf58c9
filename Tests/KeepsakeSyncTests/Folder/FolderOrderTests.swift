import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@testable import KeepsakeSync

/// What programs that sync a folder do to its files: they arrive late, in any order, in pieces, twice, under other
/// names, or never.
@Suite("Files of a shared folder in any order and condition") struct FolderOrderTests {
  let folders: CloudFolders
  let folder: URL
  /// Where the first device writes; a test copies its files one by one.
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

  /// Runs the steps on a device, and syncs after each of them. Returns the files that each one wrote, in order.
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

  @Test("segments that arrive in reverse order are applied all at once when the first one arrives")
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

  @Test("a device's segment contains no part of another's checkpoint, which arrives as a whole in its own segment")
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

  @Test("a device that starts over sends checkpoints of others as a whole, or nothing of them")
  func nobodyElsesHalfAnew() throws {
    var pages = DeviceEngine.Options()
    pages.page = 2
    let first = try FolderDevice(elsewhere, seed: 1)
    let second = try FolderDevice(elsewhere, seed: 2, engine: pages)
    let theirs = try written(by: first, [{ try $0.checkpoint(5) }, { try $0.checkpoint(6) }])
    #expect(try second.sync() == .idle)
    try second.raise("mine", to: 1)
    #expect(try second.sync() == .idle)
    for name in try second.stateFiles where !theirs.contains(name) {
      try FileManager.default.removeItem(at: second.state(name))
    }
    // While it starts over, it receives again what it offers.
    #expect(try second.sync() == .idle)
    let own = try second.stateFiles.filter { !theirs.contains($0) }
    #expect(second.answers.contains { $0.restart } && second.answers.contains { $0.more } && own.count == 1)
    let third = try FolderDevice(folder, seed: 3)
    for name in own { try carry(state: name) }
    try carryContents()
    try third.sync()
    #expect(third.value("x") == 6 && third.value("y") == 6 && third.texts() == ["6"] && third.value("mine") == 1)
    for name in theirs { try carry(state: name) }
    try third.sync()
    #expect(third.view == first.view || third.view == second.view)
    #expect(third.texts() == ["6"])
  }

  @Test("the file name of a segment doesn't matter: copies, conflicted copies and other spellings are applied once")
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
    // A file with a false name is replaced by the one that belongs there.
    try FileManager.default.removeItem(at: second.state(files[1]))
    try carry(state: files[1])
    try second.listen()
    #expect(second.value("a") == 2)
  }

  @Test("a segment truncated at any length is ignored, and is applied once it is complete")
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

  @Test("a checkpoint is shown once its contents have arrived, and doesn't hold up what another device changed")
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
    // A truncated content, and a damaged one.
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

  @Test("contents that never arrive hold up a save and what follows it until a later save replaces it")
  func contentsNever() throws {
    let first = try FolderDevice(elsewhere, seed: 1)
    // A text that the simulated storage doesn't encode as a delta.
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

  @Test("a delta whose base hasn't arrived counts as not arrived")
  func basesToo() throws {
    let first = try FolderDevice(elsewhere, seed: 1)
    var texts: [String] = []
    // The simulated storage encodes about three in four as deltas.
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

  @Test("a delta whose base isn't in the folder is refused, and a content that is in the folder isn't written again")
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

  @Test("contents that a head needs and that the folder lost are written again by a device that has them")
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

extension FolderDevice {
  /// Commits two values and a save together.
  fileprivate func checkpoint(_ number: Int64) throws {
    let keys = ["x", "y"].map { CellKey(collection: "progress", key: $0) }
    try commit(CommitDraft(saves: [draft("\(number)")], cells: keys.map { CellDraft($0, .max(.int(number))) }))
  }
}
