#if Cloud
import Foundation
import Keepsake
import TestSupport
import Testing

@testable import KeepsakeCommand

/// Several files in one call.
@Suite struct FileBatchTests {
  private func filled(_ body: (URL) throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      try Data("{\"level\": 1}".utf8).write(to: folder.appendingPathComponent("a.json"))
      try Data("{\"level\": ".utf8).write(to: folder.appendingPathComponent("cut.json"))
      try Archive.write([1, 2, 3], to: folder.appendingPathComponent("b.keepsake"))
      try body(folder)
    }
  }

  @Test("inspect shows each file under its name, and one that can't be read doesn't stop the others")
  func inspect() async throws {
    try await filled { folder in
      let ended = try Tool.run(["inspect", "a.json", "missing", "cut.json", "b.keepsake"], in: folder)
      #expect(ended.status == 66, "the highest of 65 and 66")
      let headings = ended.text.split(separator: "\n").filter { $0.hasPrefix("==>") }
      #expect(headings == ["==> a.json <==", "==> missing <==", "==> cut.json <==", "==> b.keepsake <=="])
      #expect(ended.text.contains("level: 1") && ended.text.contains("[1, 2, 3]"), "\(ended.text)")
      #expect(ended.errors.contains("cut.json") && ended.errors.contains("there is nothing at missing"))
      #expect(try Tool.run(["inspect", "a.json", "b.keepsake"], in: folder).status == 0)
      // One file is shown as before, without a heading.
      let one = try Tool.run(["inspect", "a.json"], in: folder)
      #expect(one.status == 0 && !one.text.contains("==>"))
      #expect(try Tool.run(["inspect", "-", "-"], in: folder).status == 64)
    }
  }

  @Test("for programs, it is one object with the files, each with its result or its error")
  func json() async throws {
    try await filled { folder in
      let ended = try Tool.run(["inspect", "-j", "a.json", "missing", "b.keepsake"], in: folder)
      // A slow machine has time for progress.
      let others = ended.errors.split(separator: "\n").filter { !$0.contains(#""progress""#) }
      #expect(ended.status == 66 && others.isEmpty, "\(ended.errors)")
      let object = try #require(try JSONSerialization.jsonObject(with: ended.output) as? [String: Any])
      let files = try #require(object["files"] as? [[String: Any]])
      #expect(files.map { $0["path"] as? String } == ["a.json", "missing", "b.keepsake"])
      #expect((files[1]["error"] as? [String: Any])?["code"] as? String == "noInput")
      let alone = try JSONSerialization.jsonObject(with: Tool.run(["inspect", "-j", "b.keepsake"], in: folder).output)
      #expect((files[2]["result"] as? NSDictionary) == (alone as? NSDictionary))
    }
  }

  @Test("convert writes several files into a folder, each under its name, and reports those that it can't")
  func convert() async throws {
    try await filled { folder in
      let out = folder.appendingPathComponent("out")
      let several = ["convert", "--to", "xml", "a.json", "cut.json", "b.keepsake", "out/"]
      #expect(try Tool.run(several, in: folder).status == 66, "there is no such folder")
      try FileManager.default.createDirectory(at: out, withIntermediateDirectories: true)
      let ended = try Tool.run(several + ["--lossy"], in: folder)
      #expect(ended.status == 65, "\(ended.errors)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: out.path).sorted() == ["a.plist", "b.plist"])
      #expect(ended.text.contains("a.json (JSON") && ended.errors.contains("cut.json"))
      // What exists is not replaced unless that is asked for, and never twice in one call.
      #expect(try Tool.run(["convert", "-t", "xml", "a.json", "out"], in: folder).status == 73)
      #expect(try Tool.run(["convert", "-f", "-t", "xml", "a.json", "out"], in: folder).status == 0)
      let twice = try Tool.run(["convert", "-fj", "-t", "xml", "a.json", "./a.json", "out"], in: folder)
      #expect(twice.status == 73 && twice.text.contains("same name"), "\(twice.text)")
      #expect(try Tool.run(["convert", "a.json", "b.keepsake", "out"], in: folder).status == 64, "no format")
      #expect(try Tool.run(["convert", "a.json"], in: folder).status == 64)
    }
  }

  @Test("verify checks each of several files, and its exit status is the highest, but for foreign ones beside damage")
  func verify() async throws {
    try await filled { folder in
      try Data("no archive".utf8).write(to: folder.appendingPathComponent("bad.keepsake"))
      let ended = try Tool.run(["verify", "b.keepsake", "bad.keepsake", "missing"], in: folder)
      #expect(ended.status == 66 && ended.text.contains("3 checked, 2 not sound"), "\(ended.text)")
      #expect(try Tool.run(["verify", "b.keepsake", "bad.keepsake"], in: folder).status == 1)
      #expect(try Tool.run(["verify", "a.json", "b.keepsake", "bad.keepsake"], in: folder).status == 1)
      #expect(try Tool.run(["verify", "a.json", "b.keepsake"], in: folder).status == 65)
      #expect(try Tool.run(["verify", "b.keepsake"], in: folder).status == 0)
    }
  }
}
#endif
