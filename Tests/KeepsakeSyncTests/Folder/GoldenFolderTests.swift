import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

@testable import KeepsakeSync

/// Every later release can read, and continue in, a shared folder that devices of this release wrote.
///
/// With `KEEPSAKE_WRITE_FIXTURES=1` the folder and its expected contents are written if they are missing; existing ones
/// are never overwritten.
@Suite(.serialized) struct GoldenFolderTests {
  private static let fixtures = Repository.root.appending(path: "Tests/KeepsakeSyncTests/Fixtures/v1")
  private static let recorded = fixtures.appending(path: "folder")
  private static let portrait = fixtures.appending(path: "folder.txt")
  private static var writes: Bool { ProcessInfo.processInfo.environment["KEEPSAKE_WRITE_FIXTURES"] == "1" }

  private let folders: CloudFolders

  init() throws { folders = try CloudFolders() }

  private static func key(_ name: String) -> CellKey { CellKey(collection: "progress", key: name) }

  /// Fills a folder from two devices, with values of every rule, saves, a delta, a conflict, a delete, and a snapshot.
  private static func fill(_ folder: URL) throws {
    var options = FolderOptions()
    options.segmentsBeforeSnapshot = 4
    let (first, second) = (
      try FolderDevice(folder, seed: 1, options: options), try FolderDevice(folder, seed: 2, options: options)
    )
    // A reset requires that the device has caught up.
    try first.sync()
    let score = BestScore(
      order: .descending,
      entry: .init(score: .int(900), dateMilliseconds: 5, payload: Data(count: 16) + Data("a run".utf8)))
    for (name, change) in [
      ("level", .max(.int(6))), ("fastest", .min(.double(40.5))), ("hat", .set(.string("röd"))),
      ("badges", .insert([.string("hero"), .int(3), .data(Data([1, 2]))])), ("coins", .add(plus: 7, minus: 2)),
      ("flowers", .insertElements([.string("rose"), .string("tulip")])),
      ("best times", .entries([.string("cave"): .min(.int(61))])),
      ("first win", .optional(.min(.int(9)))), ("never", .optional(nil)), ("again", .reset(.max(.int(1)))),
    ] as [(String, CellDraft.Change)] {
      try first.commit(CommitDraft(cells: [CellDraft(key(name), change)]))
    }
    try first.commit(CommitDraft(cells: [CellDraft(CellKey(collection: "scores", key: "4/easy/Ada"), .best(score))]))
    try first.save("one")
    try first.save("journal", slot: "journal")
    try first.sync()
    try second.sync()
    try second.commit(CommitDraft(cells: [CellDraft(key("flowers"), .removeElements([.string("rose")]))]))
    try second.save("theirs", slot: "journal")
    try second.save("gone", slot: "deleted")
    try second.sync()
    try first.save("mine", slot: "journal")
    try first.sync()
    try second.save(nil, slot: "deleted")
    try second.sync()
    // Enough segments for a snapshot, which replaces none before both have it.
    for number in 2...6 {
      try first.save("one, and \(number)")
      try first.sync()
    }
    try first.cloud.putContent(
      EncodedContent(
        hash: ContentHash(of: Data("a delta".utf8)), length: 7, base: ContentHash(of: Data("one".utf8)),
        bytes: Data([1, 2, 3])))
    try second.sync()
  }

  /// Everything that a device finds in the folder.
  private static func portrait(of device: FolderDevice) throws -> [String] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    func json(_ value: some Encodable) throws -> String { String(decoding: try encoder.encode(value), as: UTF8.self) }
    let storage = device.storage
    var lines = try storage.cells(in: nil).map { "cell \(try json($0))" }
    lines += try storage.allVersions().sorted().map { id in
      let known = try storage.version(id).map { try json($0.record) }
      return "version \(known ?? "\(id), unknown")\(storage.isCovered(id) ? " covered" : "")"
    }
    for slot in storage.slots().sorted() {
      lines.append(
        "slot \(slot): heads \(storage.heads(of: slot).sorted()), texts \(device.texts(slot).map { $0 ?? "missing" })")
    }
    return lines
  }

  private static func files(in folder: URL) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter {
      var isFolder: ObjCBool = false
      return FileManager.default.fileExists(atPath: folder.path + "/" + $0, isDirectory: &isFolder)
        && !isFolder.boolValue
    }.sorted()
  }

  /// A copy of the recorded folder, which a test may write to.
  private func place() throws -> URL {
    if Self.writes, !FileManager.default.fileExists(atPath: Self.recorded.path) {
      let made = try folders.make("made")
      try Self.fill(made)
      try FileManager.default.createDirectory(at: Self.fixtures, withIntermediateDirectories: true)
      try FileManager.default.copyItem(at: made, to: Self.recorded)
    }
    let folder = folders.url.appendingPathComponent("cloud")
    try FileManager.default.copyItem(at: Self.recorded, to: folder)
    return folder
  }

  @Test("a device reads everything that a folder of the first release contains")
  func reads() throws {
    let folder = try place()
    #expect(try FolderPlace.plain(folder).container(making: nil) == FolderDevice.container)
    let device = try FolderDevice(folder, seed: 99)
    #expect(try device.sync() == .idle)
    let found = try Self.portrait(of: device)
    if Self.writes, !FileManager.default.fileExists(atPath: Self.portrait.path) {
      try Data((found.joined(separator: "\n") + "\n").utf8).write(to: Self.portrait)
    }
    let expected = try String(contentsOf: Self.portrait, encoding: .utf8).split(separator: "\n").map(String.init)
    #expect(found.difference(from: expected).isEmpty)
    #expect(
      device.notifications.allSatisfy { if case .damaged = $0 { false } else { true } }, "\(device.notifications)")
  }

  @Test("every file of a folder of the first release is decoded, and encoded as the same bytes")
  func files() throws {
    let folder = try place()
    let files = try Self.files(in: folder)
    let segments = files.filter { $0.hasPrefix("state/") }
    let contents = files.filter { $0.hasPrefix("contents/") }
    #expect(segments.count > 5 && contents.count > 8 && files.count == segments.count + contents.count + 1)
    let read = try segments.map { try #require(StateSegment(Data(contentsOf: folder.appendingPathComponent($0)))) }
    #expect(read.allSatisfy { $0.container == FolderDevice.container } && read.contains(where: \.links.isSnapshot))
    for (file, segment) in zip(segments, read) {
      #expect(file == "state/\(segment.hash)")
      let again = try StateSegment.encoded(
        segment.container, segment.links, cells: segment.cells, versions: segment.versions)
      #expect(try again.bytes == Data(contentsOf: folder.appendingPathComponent(file)))
    }
    for file in contents {
      let bytes = try Data(contentsOf: folder.appendingPathComponent(file))
      let content = try #require(ContentFile.decoded(bytes), "\(file)")
      #expect(file.hasSuffix("/\(content.hash)") && ContentFile.encoded(content) == bytes)
    }
  }

  @Test("devices of this release continue in a folder of the first one, and receive each other's changes")
  func goesOn() throws {
    let folder = try place()
    let (first, second) = (try FolderDevice(folder, seed: 98), try FolderDevice(folder, seed: 99))
    try first.sync()
    try first.raise("level", to: 7)
    try first.save("one more")
    #expect(try first.sync() == .idle)
    #expect(try second.sync() == .idle)
    #expect(second.value("level") == 7 && second.texts() == ["one more"])
    #expect(try Self.portrait(of: first) == Self.portrait(of: second))
  }
}
