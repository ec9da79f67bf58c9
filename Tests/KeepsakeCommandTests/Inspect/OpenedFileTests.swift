#if Cloud
import ArgumentParser
import CZlib
import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeInterchange
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeCommand

/// What people hand over is opened where it can be, and it is said what was opened on the way.
@Suite struct OpenedFileTests: InspectsFiles {
  let folder = TemporaryFolder.url("opened")
  private static let json = Data(#"{"level": 3, "name": "Ada"}"#.utf8)

  private func failure(_ name: String) throws -> CommandFailure {
    CommandFailure(try #require(throws: (any Error).self) { _ = try InspectCommand.look(at: path(name)) })
  }

  /// Compresses with zlib; `window` is 15 for zlib's own format, and 31 for gzip.
  private static func deflated(_ data: Data, window: Int32) throws -> Data {
    var stream = z_stream()
    let size = Int32(MemoryLayout<z_stream>.size)
    try #require(deflateInit2_(&stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, size) == Z_OK)
    defer { deflateEnd(&stream) }
    var source = [UInt8](data)
    var target = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(source.count))))
    let status = source.withUnsafeMutableBufferPointer { source in
      target.withUnsafeMutableBufferPointer { target in
        (stream.next_in, stream.avail_in) = (source.baseAddress, UInt32(source.count))
        (stream.next_out, stream.avail_out) = (target.baseAddress, UInt32(target.count))
        return deflate(&stream, Z_FINISH)
      }
    }
    try #require(status == Z_STREAM_END)
    return Data(target.prefix(Int(stream.total_out)))
  }

  private static func gzip(_ data: Data) throws -> Data { try deflated(data, window: 31) }
  private static func zlib(_ data: Data) throws -> Data { try deflated(data, window: 15) }

  private static func marked(_ text: String, _ encoding: String.Encoding, _ mark: [UInt8]) throws -> Data {
    Data(mark) + (try #require(text.data(using: encoding)))
  }

  /// Bytes written as the text of the characters with their numbers.
  private static func asText(_ data: Data) -> Data {
    Data(String(String.UnicodeScalarView(data.map { Unicode.Scalar($0) })).utf8)
  }

  @Test("each wrapping is opened by inspect, diff and convert, which say so")
  func opens() async throws {
    try await cleaning {
      let text = String(decoding: Self.json, as: UTF8.self)
      let files: [(String, Data, [String])] = [
        ("a.json.gz", try Self.gzip(Self.json), ["gzip"]),
        ("two.gz", try Self.gzip(Self.json.prefix(9)) + Self.gzip(Self.json.dropFirst(9)) + Data(count: 7), ["gzip"]),
        ("a.zz", try Self.zlib(Self.json), ["zlib"]),
        ("file1.rmmzsave", Self.asText(try Self.zlib(Self.json)), [Wrapping.rpgMakerMZ.rawValue]),
        ("a.zst", try Zstd.compress(Self.json), ["zstd"]),
        ("a.b64", Data(Self.json.base64EncodedString(options: .lineLength64Characters).utf8), ["base64"]),
        ("bare", Data(Self.json.base64EncodedString().filter { $0 != "=" }.utf8), ["base64"]),
        ("a16", try Self.marked(text, .utf16LittleEndian, [0xFF, 0xFE]), ["UTF-16"]),
        ("b16", try Self.marked(text, .utf16BigEndian, [0xFE, 0xFF]), ["UTF-16"]),
        ("a32", try Self.marked(text, .utf32LittleEndian, [0xFF, 0xFE, 0, 0]), ["UTF-32"]),
        ("b32", try Self.marked(text, .utf32BigEndian, [0, 0, 0xFE, 0xFF]), ["UTF-32"]),
        ("deep", try Self.gzip(Data(try Self.gzip(Self.json).base64EncodedString().utf8)), ["gzip", "base64", "gzip"]),
        ("five.json5.gz", try Self.gzip(Data("/* a */ {level: 3, name: 'Ada',}".utf8)), ["gzip"]),
      ]
      try write(Self.json, "plain")
      try write(Data(#"{"level": 4, "name": "Ada"}"#.utf8), "other")
      for (name, bytes, wrappings) in files {
        try write(bytes, name)
        let found = try inspection(name)
        #expect(found.wrappings == wrappings && found.root["level"] == .integer(3), "\(name)")
        let opening = wrappings.map { $0 + ", in it: " }.joined()
        #expect(found.text().hasPrefix(opening + "JSON, "), "\(name)")
        let document = try JSONSerialization.jsonObject(with: found.json()) as? [String: Any]
        let header = try #require(document?["header"] as? [String: Any])
        #expect(header["wrappings"] as? [String] == wrappings && header["format"] as? String == "JSON", "\(name)")
        let same = try DiffCommand.parse([path("plain"), path(name)]).difference()
        #expect(same.isEmpty && same.text().isEmpty, "\(name)")
        let different = try DiffCommand.parse([path("other"), path(name)]).difference().text()
        #expect(
          different == "files\n  - JSON\n  + \(opening)JSON\n\nvalues\n    level: 4 -> 3\n", "\(name): \(different)")
        let answer = try ConvertCommand.parse([path(name), path("out.plist"), "--force"]).convert()
        #expect(answer.line.contains("(\(opening)JSON, "), "\(answer.line)")
        #expect(answer.wrappings?.map(\.rawValue) == wrappings)
        let written = try PropertyList(Data(contentsOf: folder.appendingPathComponent("out.plist")))
        #expect(written["name"]?.string == "Ada", "\(name)")
      }
    }
  }

  @Test("property lists, keyed archives, archives and exported saves are found in them")
  func kinds() async throws {
    try await cleaning {
      let list: PropertyList = ["level": 3, "name": "Ada"]
      try write(Self.gzip(list.encoded(as: .binary)), "a.plist.gz")
      #expect(try inspection("a.plist.gz").text().hasPrefix("gzip, in it: binary property list, "))
      let xml = String(decoding: try list.encoded(as: .xml), as: UTF8.self)
      try write(Self.marked(xml.replacing("UTF-8", with: "UTF-32"), .utf32LittleEndian, [0xFF, 0xFE, 0, 0]), "x")
      #expect(try inspection("x").text().hasPrefix("UTF-32, in it: XML property list, "))
      _ = try ConvertCommand.parse([path("x"), path("hero.archive")]).convert()
      let keyed = try Data(contentsOf: folder.appendingPathComponent("hero.archive"))
      try write(Data(keyed.base64EncodedString().utf8), "hero.b64")
      #expect(try inspection("hero.b64").text().hasPrefix("base64, in it: keyed archive, "))
      // An archive in a frame of zstd is an ordinary one.
      try Archive.write(
        Array(1...5_000), to: folder.appendingPathComponent("plain.keepsake"), compression: .zstd(level: 3))
      let archive = try Data(contentsOf: folder.appendingPathComponent("plain.keepsake"))
      #expect(try inspection("plain.keepsake").wrappings.isEmpty)
      try write(Self.gzip(archive), "plain.keepsake.gz")
      #expect(try inspection("plain.keepsake.gz").text().hasPrefix("gzip, in it: archive, format "))
      let report = Verification.run(on: [path("plain.keepsake.gz")], progress: { _ in }, each: { _ in })
      #expect(report.unsound == 0 && report.files.first?.message.hasPrefix("gzip, in it: archive of ") == true)
      // In a folder, other programs' compressed files are passed over.
      #expect(Verification.run(on: [folder.path], progress: { _ in }, each: { _ in }).files.count == 1)
      try write(Self.gzip(archive.dropLast()), "cut.gz")
      let damaged = Verification.run(on: [path("cut.gz")], progress: { _ in }, each: { _ in })
      #expect(damaged.files.first?.state == .damaged)
      #expect(damaged.files.first?.message.contains("is gzip, in it: ") == true, "\(damaged.files)")
    }
  }

  @Test("an exported save that was compressed is shown, and its own files are opened in turn")
  func exported() async throws {
    try await cleaning {
      let store = folder.appendingPathComponent("store")
      let game = try GameData.open("com.example.opened", at: store)
      try write(Self.gzip(Self.json), "level.json.gz")
      _ = try game.files.track(folder.appendingPathComponent("level.json.gz"))
      try game.close()
      #expect(await status(of: ExportCommand.self, [store.path, "tracked:level.json.gz", path("a.save")]) == 0)
      try write(Self.gzip(Data(contentsOf: folder.appendingPathComponent("a.save"))), "a.save.gz")
      guard case .save(let report, let saved?) = try InspectCommand.look(at: path("a.save.gz")) else {
        Issue.record("no save")
        return
      }
      #expect(report.lines.first?.hasPrefix("gzip, in it: exported save of the slot ") == true, "\(report.lines)")
      #expect(saved.wrappings == ["gzip"] && saved.root["level"] == .integer(3))
      let answer = try ConvertCommand.parse([path("a.save.gz"), path("out.json")]).convert()
      #expect(answer.wrappings == [.gzip, .gzip])
      guard case .archive(let slot) = try InspectCommand.look(at: store.path, slot: "tracked:level.json.gz") else {
        Issue.record("no save")
        return
      }
      #expect(slot.text().hasPrefix("gzip, in it: JSON, "))
    }
  }

  @Test("a property list in the text format of OpenStep is read, and what only begins like one is not")
  func openStep() async throws {
    try await cleaning {
      let text = "// a\n{ name = \"Ad\\U00e9\"; items = (sword, \"long bow\"); key = <0aff>; sub = { b = 2; a = 1; }; }"
      try write(Data(text.utf8), "a.plist")
      let found = try inspection("a.plist")
      #expect(
        found.text().hasPrefix("OpenStep property list, \(text.utf8.count) bytes\n")
          && found.text().contains(#"items: ["sword", "long bow"]"#) && found.text().contains("name: \"Adé\""),
        "\(found.text())")
      _ = try ConvertCommand.parse([path("a.plist"), path("b.plist")]).convert()
      #expect(try DiffCommand.parse([path("a.plist"), path("b.plist")]).difference().isEmpty)
      try write(Data("{ a = 1; }".utf8), "braces")
      #expect(try inspection("braces").root["a"] == .string("1"))
      try write(Data("\"a\" = \"1\";\n\"b\" = \"2\";\n".utf8), "a.strings")
      #expect(try inspection("a.strings").root["b"] == .string("2"))
      try write(Self.marked("\"a\" = \"1\";", .utf16LittleEndian, [0xFF, 0xFE]), "b.strings")
      #expect(try inspection("b.strings").text().hasPrefix("UTF-16, in it: OpenStep property list, "))
      let no = [
        "{ \"a\": 1; }", "// nothing", "(a b)", "{ a = 1", String(repeating: "(", count: 100_000), "hello; you",
      ]
      for text in no {
        try write(Data(text.utf8), "no")
        #expect(try failure("no").kind == .data, "\(text.prefix(20))")
      }
    }
  }

  @Test(
    "what isn't read is named below gzip, too",
    arguments: [
      ("level.dat", [0x0A, 0, 0, 1], "an NBT file"), ("a.tres.gz", Array("[gd_resource type=".utf8), "Godot"),
      ("a", Array("RSRC".utf8) + [1, 0], "Godot"),
      ("file1.rpgsave.gz", Array("N4IgLgngDgpiBcIAKBDAzgMwK4BtYAIB".utf8), "MV"),
      ("file1.rpgsave", Array("N4IgLgngDgpiBcIAKBDAzgMwK4BtYAIB".utf8), "RPG Maker MV"),
      ("b.rmmzsave.gz", [1, 2], "MZ"),
      ("a.zip.gz", [0x50, 0x4B, 3, 4], "a zip archive"), ("a.sqlite.gz", Array("SQLite format 3\0".utf8), "SQLite"),
      ("a.tar.gz", [UInt8](repeating: 0x61, count: 257) + Array("ustar\0".utf8), "a tar archive"),
    ] as [(String, [UInt8], String)])
  func named(name: String, bytes: [UInt8], word: String) async throws {
    try await cleaning {
      try write(name == "file1.rpgsave" ? Data(bytes) : Self.gzip(Data(bytes)), name)
      let failure = try failure(name)
      #expect(failure.kind == .data && failure.message.contains(word), "\(failure.message)")
      let isWrapped = failure.message.hasPrefix(path(name) + " is gzip, in it: a ")
      #expect(isWrapped || failure.message.hasPrefix(path(name) + " is gzip, in it: an ") || name == "file1.rpgsave")
      #expect(failure.next?.isEmpty == false)
    }
  }

  @Test("a small file that opens to more than can be read, or to ever more files, is refused")
  func bombs() async throws {
    try await cleaning {
      let zeros = Data(count: InputKind.maximumForeignBytes / 4 + 1)
      for (name, bytes) in [
        ("a.gz", try Self.gzip(zeros)), ("a.zz", try Self.zlib(zeros)), ("a.zst", try Zstd.compress(zeros)),
      ] {
        #expect(bytes.count < 1 << 20)
        try write(bytes, name)
        let failure = try failure(name)
        #expect(failure.kind == .data && failure.message.contains("more than"), "\(failure.message)")
        #expect(await status(of: ConvertCommand.self, [path(name), path("out.json")]) == 65)
      }
      var nested = Self.json
      for depth in 1...5 {
        nested = try Self.gzip(nested)
        try write(nested, "deep\(depth)")
      }
      #expect(try inspection("deep4").wrappings.count == 4)
      #expect(try failure("deep5").message.contains("wrapped more than 4 times"))
    }
  }

  @Test("damage in a wrapping is told as that, wherever a byte is altered or lost")
  func damage() async throws {
    try await cleaning {
      let bytes = try Self.gzip(Self.json)
      // The ten bytes of the header say when and where it was written.
      for index in 10..<bytes.count {
        var altered = bytes
        altered[index] ^= 0x55
        try write(altered, "a.gz")
        #expect(try failure("a.gz").message.contains("compressed by gzip, and damaged: "), "\(index)")
        try write(bytes.prefix(index), "a.gz")
        #expect(try failure("a.gz").message.contains("damaged: it is cut off"), "\(index)")
      }
      try write(bytes + Data("x".utf8), "a.gz")
      #expect(try failure("a.gz").message.contains("followed by other bytes"))
      try write(Data(count: 3), "a.gz")
      #expect(try failure("a.gz").message.contains("neither a Keepsake archive"))
    }
  }
}
#endif
