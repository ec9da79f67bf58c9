import Foundation
import KeepsakePlatform
import KeepsakeStore
import TestSupport
import Testing

@testable import Keepsake

/// The files of a folder in which an older game kept its saves.
@Suite(.hangLimit) struct OlderSaveFilesTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func write(_ text: String, to name: String) throws {
    try Data(text.utf8).write(to: folder.url.appendingPathComponent(name))
  }

  @Test("regular files are read; links, pipes, folders and huge files are reported, and the system's files left out")
  func kinds() throws {
    let outside = try TemporaryFolder()
    let secret = outside.url.appendingPathComponent("secret")
    try Data("secret".utf8).write(to: secret)
    try write("7", to: "main.save")
    try write("", to: "empty.save")
    try write("x", to: ".DS_Store")
    let manager = FileManager.default
    let at = { folder.url.appendingPathComponent($0) }
    try manager.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1_000)], ofItemAtPath: at("main.save").path)
    try manager.createSymbolicLink(at: at("link"), withDestinationURL: secret)
    try manager.createSymbolicLink(at: at("loop"), withDestinationURL: at("loop"))
    try manager.createSymbolicLink(at: at("linked folder"), withDestinationURL: outside.url)
    try manager.createDirectory(at: at("folder"), withIntermediateDirectories: true)
    #expect(mkfifo(at("pipe").path, 0o666) == 0)
    try write("", to: "huge")
    let huge = try FileHandle(forWritingTo: at("huge"))
    try huge.truncate(atOffset: 1 << 40)
    try huge.close()

    let files = try OlderSaveFiles(in: folder.url, device: "phone")
    #expect(files.saves.map(\.name) == ["empty.save", "main.save"])
    let main = try #require(files.saves.last)
    #expect(main.bytes == Data("7".utf8) && main.device == "phone")
    #expect(main.modified == Date(timeIntervalSince1970: 1_000))
    let reasons = Dictionary(uniqueKeysWithValues: files.unread.map { ($0.name, $0.reason) })
    #expect(
      reasons == [
        "link": .notRegular, "loop": .notRegular, "linked folder": .notRegular, "folder": .notRegular,
        "pipe": .notRegular, "huge": .tooLarge,
      ])
    #expect(files.unread.allSatisfy { !$0.message.isEmpty })
  }

  @Test("a file of exactly the limit is read, and one byte more isn't, whatever limit is asked for")
  func limits() throws {
    try write("12345", to: "five")
    try write("123456", to: "six")
    let files = try OlderSaveFiles(in: folder.url, maximumFileBytes: 5)
    #expect(files.saves.map(\.name) == ["five"] && files.unread.map(\.reason) == [.tooLarge])
    #expect(try OlderSaveFiles(in: folder.url, maximumFileBytes: .min).unread.count == 2)
    #expect(try OlderSaveFiles(in: folder.url, maximumFileBytes: .max).saves.count == 2)
  }

  @Test("no more bytes are read of all files together than the limit; a smaller file may still fit")
  func together() throws {
    for (name, text) in [("a", "12345"), ("b", "1234"), ("c", "12345"), ("d", "123")] { try write(text, to: name) }
    let files = try OlderSaveFiles(in: folder.url, device: nil, maximumFileBytes: 100, maximumTotalBytes: 12)
    #expect(files.saves.map(\.name) == ["a", "b", "d"] && files.unread.map(\.name) == ["c"])
    #expect(files.unread[0].reason == .tooLarge && files.unread[0].message.contains("together"))
  }

  @Test("no more files are read than the limit")
  func many() throws {
    let folder = try TemporaryFolder.inMemory()
    for number in 0..<OlderSaveFiles.maximumFiles + 2 {
      try Data("1".utf8).write(to: folder.url.appendingPathComponent(String(10_000 + number)))
    }
    let files = try OlderSaveFiles(in: folder.url)
    #expect(files.saves.count == OlderSaveFiles.maximumFiles && files.unread.map(\.reason) == [.tooMany, .tooMany])
  }

  @Test("a folder that doesn't exist, or is a file, is an error")
  func noFolder() throws {
    try write("1", to: "file")
    for (name, code) in [("none", StoreError.Code.missing), ("file", .io)] {
      let url = folder.url.appendingPathComponent(name)
      #expect(storeErrorCode { _ = try OlderSaveFiles(in: url) } == code)
    }
  }

  @Test("the files of a folder become slots of the names that the game makes of theirs")
  func imports() throws {
    try write("7", to: "main.save")
    try write("?", to: "other.save")
    let game = try Device().open()
    defer { end(game) }
    let report = try game.saves.importOlderSaves(
      OlderSaveFiles(in: folder.url).saves,
      to: { save in save.name.hasSuffix(".save") ? Slot<World>(String(save.name.dropLast(5))) : nil },
      decode: { save in
        guard let level = Int(String(decoding: save.bytes, as: UTF8.self)) else { throw CocoaError(.coderReadCorrupt) }
        return World(level: level)
      })
    #expect(report.imported.map(\.version.slot) == ["main"] && report.unfit.map(\.name) == ["other.save"])
    #expect(try game.saves.load(.main)?.level == 7)
  }
}
