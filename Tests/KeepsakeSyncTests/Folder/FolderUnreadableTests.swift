import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Synchronization
import Testing

@testable import KeepsakeSync

/// Files that are in a folder and that can't be read for a while: a disk error, a lock, another program's permissions.
@Suite("Files of a shared folder that can't be read") struct FolderUnreadableTests {
  private static let day: Int64 = 86_400_000
  private let folders: CloudFolders
  private let access = HiddenFile()
  private let place: FolderPlace
  private let options: FolderOptions

  init() throws {
    folders = try CloudFolders()
    place = FolderPlace(try folders.make(), by: access, of: .identity)
    var options = FolderOptions()
    options.segmentsBeforeSnapshot = 4
    self.options = options
  }

  private func setDate(_ file: URL, _ milliseconds: Int64) throws {
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: Double(milliseconds) / 1000)], ofItemAtPath: file.path)
  }

  @Test("a content that can't be read keeps its save away, and nothing else")
  func content() throws {
    let first = try FolderDevice(place, seed: 1, options: options)
    let others = try [2, 3].map { try FolderDevice(place.url, seed: $0, options: options) }
    try others[0].save("hidden", slot: "other")
    try others[0].sync()
    try others[1].raise("level", to: 5)
    try others[1].sync()
    access.name.withLock { $0 = first.contentFile("hidden").lastPathComponent }
    #expect(try first.sync() == .idle)
    #expect(first.value("level") == 5 && first.texts("other") == [])
    access.name.withLock { $0 = nil }
    try first.listen()
    #expect(first.texts("other") == ["hidden"])
  }

  @Test("a device whose own segment changed its date and can't be read goes on, and doesn't start over")
  func ownSegment() throws {
    let first = try FolderDevice(place, seed: 1, options: options)
    try first.save("one")
    #expect(try first.sync() == .idle)
    let segment = try first.stateFiles[0]
    try setDate(first.state(segment), first.now)
    access.name.withLock { $0 = segment }
    try first.save("two")
    #expect(try first.sync() == .idle)
    #expect(try first.stateFiles.count == 2)
    #expect(!first.answers.contains { $0.restart })
  }

  /// Saves and syncs, each time in a segment of its own.
  private func play(_ device: FolderDevice, _ numbers: ClosedRange<Int>) throws {
    for number in numbers {
      try device.raise("level", to: Int64(number))
      try device.save("save \(number)")
      #expect(try device.sync() == .idle)
    }
  }

  /// Stores a content that is twenty days old.
  private func putOld(_ text: String, at today: Int64, by device: FolderDevice) throws -> URL {
    let bytes = Data(text.utf8)
    try device.cloud.putContent(
      EncodedContent(hash: ContentHash(of: bytes), length: bytes.count, base: nil, bytes: bytes))
    try setDate(device.contentFile(text), today - 20 * Self.day)
    return device.contentFile(text)
  }

  @Test("no contents are removed while a segment is there that can't be read yet", arguments: [true, false])
  func contentsOfUnread(isHalf: Bool) throws {
    let name = "\(ContentHash(of: Data("other".utf8)))"
    let first = try FolderDevice(place, seed: 1, options: options)
    // The file system knows when a file was made, whatever date it was given.
    let today = Int64(Date.now.timeIntervalSince1970 * 1_000)
    try play(first, 1...1)
    let old = try putOld("old", at: today, by: first)
    func tidyUp(after numbers: ClosedRange<Int>, inDays days: Int64) throws {
      try play(first, numbers)
      let snapshot = try #require(first.cloud.ownChain().first { first.cloud.links[$0]?.isSnapshot == true })
      try setDate(first.state("\(snapshot)"), today)
      try first.listen()
      let before = try first.stateFiles.count
      try first.cloud.tidy(now: today + days * Self.day)
      #expect(try first.stateFiles.count < before)
    }
    let elsewhere = try FolderDevice(folders.make("elsewhere"), seed: 2, options: options)
    try elsewhere.save("old", slot: "other")
    try elsewhere.sync()
    let segment = try Data(contentsOf: elsewhere.state(try elsewhere.stateFiles[0]))
    try (isHalf ? segment.dropLast(3) : segment).write(to: first.state(name))
    try setDate(first.state(name), today - 100 * Self.day)
    access.name.withLock { $0 = isHalf ? nil : name }
    try tidyUp(after: 2...6, inDays: 20)
    #expect(FileManager.default.fileExists(atPath: old.path))
    // What has stayed incomplete for so long is damaged. What can't be read may be whole.
    try tidyUp(after: 7...12, inDays: 31)
    #expect(FileManager.default.fileExists(atPath: old.path) == !isHalf)
    guard !isHalf else { return }
    access.name.withLock { $0 = nil }
    try first.listen()
    #expect(first.texts("other") == ["old"])
    // What waited is collected when it can be, though no further segment is removed: a content that nobody needs.
    let other = try putOld("other", at: today, by: first)
    try first.cloud.tidy(now: today + 32 * Self.day)
    #expect(!FileManager.default.fileExists(atPath: other.path))
  }
}

/// A folder in which one file can't be read.
private final class HiddenFile: FolderAccess {
  let name = Mutex<String?>(nil)
  private let folder = PlainFolder()

  func item(at path: String, known: FolderSignature?) throws(TransportFailure) -> FolderItem? {
    try folder.item(at: path, known: known)
  }
  func names(in folder: String) throws(TransportFailure) -> [String]? { try self.folder.names(in: folder) }
  func read(_ path: String, limit: Int, isPrefix: Bool) throws(TransportFailure) -> Data? {
    if let name = name.withLock(\.self), path.hasSuffix(name) { throw .looking(at: path, EACCES) }
    return try folder.read(path, limit: limit, isPrefix: isPrefix)
  }
  func makeFolder(_ path: String) throws { try folder.makeFolder(path) }
  func write(_ bytes: Data, to path: String) throws { try folder.write(bytes, to: path) }
  func remove(_ path: String) throws(TransportFailure) { try folder.remove(path) }
  func fetch(_ path: String) {}
}
