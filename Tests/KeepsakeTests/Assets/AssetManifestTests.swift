import Foundation
import Keepsake
import Testing

/// The list that a game's files are checked against: the same for the same files, and refused if it can't be right.
@Suite struct AssetManifestTests {
  private func code(_ text: String) -> AssetError.Code? {
    assetErrorCode { _ = try AssetManifest(decoding: Data(text.utf8)) }
  }

  @Test("the same files give the same manifest, sorted, one asset per line, and it is read back unchanged")
  func stable() throws {
    let world = try AssetWorld(["b": 3, "B2/a": 2, "a/\u{E9} \u{1F680}.png": 1, "a-b": 0])
    let bytes = try Data(contentsOf: world.manifest)
    let manifest = try AssetManifest(contentsOf: world.manifest)
    #expect(try manifest.encoded() == bytes)
    #expect(manifest.entries.map(\.path) == ["B2/a", "a-b", "a/\u{E9} \u{1F680}.png", "b"])
    #expect(manifest.entries.map(\.size) == [2, 0, 1, 3] && manifest.bytesInAll == 6)
    #expect(
      manifest.entries.map(\.hash)
        == manifest.entries.map { ContentHash(of: world.bytes[$0.path] ?? Data("none".utf8)) })
    #expect(String(decoding: bytes, as: UTF8.self).split(separator: "\n").count == 10)
    try world.makeManifest()
    #expect(try Data(contentsOf: world.manifest) == bytes)
    #expect(try manifest.isWritten(at: world.manifest))
    try world.write(Data(), to: "new")
    try world.makeManifest()
    #expect(try !manifest.isWritten(at: world.manifest))
    let empty = try AssetWorld([:])
    #expect(try AssetLibrary(at: empty.url).paths == [])
  }

  @Test("a manifest with any bit flipped or cut at any length is refused, or still has the same meaning")
  func altered() throws {
    let world = try AssetWorld(["Images/Ship.png": 1204, "b": 7])
    let bytes = try Data(contentsOf: world.manifest)
    let manifest = try AssetManifest(decoding: bytes)
    var same = 0
    for index in bytes.indices {
      for bit in 0..<8 {
        var altered = bytes
        altered[index] ^= 1 << bit
        do {
          let read = try AssetManifest(decoding: altered)
          #expect(read == manifest, "byte \(index), bit \(bit)")
          same += 1
        } catch {
          #expect(error.code == .damagedManifest || error.code == .newerManifest, "byte \(index), bit \(bit): \(error)")
        }
      }
      // The last byte is the end of the line.
      if index < bytes.count - 1 {
        #expect(code(String(decoding: bytes.prefix(index), as: UTF8.self)) == .damagedManifest, "\(index)")
      }
    }
    // Mostly changed white space.
    #expect(same < 100, "\(same)")
  }

  @Test("a manifest is refused if its paths collide, also when case is ignored, or aren't in normalized form")
  func duplicates() throws {
    for pair in [
      ["a", "a"], ["Ship.png", "ship.PNG"], ["Images/a", "images/b"], ["a", "a/b"], ["A/b", "a"], ["\u{E9}", "\u{C9}"],
      ["x/y", "x/y/z"],
    ] {
      let data = try HostilePaths.manifest(pair.map { ($0, 0) })
      #expect(assetErrorCode { _ = try AssetManifest(decoding: data) } == .damagedManifest, "\(pair)")
    }
    // A path that isn't normalized is refused, because some file systems would take it for another file.
    let data = try HostilePaths.manifest([("e\u{301}", 0)])
    #expect(assetErrorCode { _ = try AssetManifest(decoding: data) } == .damagedManifest)
  }

  @Test("impossible sizes, invalid numbers and other JSON are reported as damage, a newer format as newer")
  func hostile() throws {
    for size in [-1, Int(Int32.max) + 1, .max, .min] {
      let data = try HostilePaths.manifest([("a", size)])
      #expect(assetErrorCode { _ = try AssetManifest(decoding: data) } == .damagedManifest, "\(size)")
    }
    let none = String(repeating: "0", count: 64)
    for text in [
      "", "{}", "[]", "null", "7", "{\"format\":1}", "{\"format\":\"1\"}", "{\"format\":1e99}", "{\"format\":0}",
      "{\"format\":-1}",
      "{\"format\":1,\"checksum\":\"\(none)\",\"assets\":{}}", "{\"format\":1,\"checksum\":\"\(none)\",\"assets\":[7]}",
      "{\"format\":1,\"checksum\":7,\"assets\":[]}", "{\"format\":1,\"checksum\":\"\(none)\",\"assets\":[]}",
      "{\"format\":1,\"checksum\":\"\",\"assets\":[{\"path\":\"a\",\"size\":1.5,\"sha256\":\"\(none)\"}]}",
      "{\"format\":1,\"checksum\":\"\",\"assets\":[{\"path\":\"a\",\"size\":1,\"sha256\":\"\(none)0\"}]}",
      "{\"format\":1,\"checksum\":\"\",\"assets\":[{\"path\":null,\"size\":1,\"sha256\":\"\(none)\"}]}",
      String(repeating: "[", count: 100_000), "{\"assets\":" + String(repeating: "[", count: 100_000),
    ] { #expect(code(text) == .damagedManifest, "\(text.prefix(60))") }
    #expect(code("{\"format\":2,\"files\":\"of another kind\"}") == .newerManifest)
    #expect(code("{\"format\":9223372036854775807}") == .newerManifest)
  }

  @Test("a manifest that lists too many assets, or whose file is 1 TiB large, is refused")
  func huge() throws {
    let list = String(repeating: "{\"path\":\"\",\"size\":0,\"sha256\":\"\"},", count: 200_001).dropLast()
    #expect(code("{\"format\":1,\"checksum\":\"\",\"assets\":[\(list)]}") == .damagedManifest)
    let world = try AssetWorld(["a": 1])
    let handle = try FileHandle(forWritingTo: world.manifest)
    // A sparse file: it takes no space on the disk.
    try handle.truncate(atOffset: 1 << 40)
    try handle.close()
    #expect(assetErrorCode { _ = try AssetLibrary(at: world.url) } == .damagedManifest)
    try world.makeManifest()
    #expect(try AssetLibrary(at: world.url).paths == ["a"])
  }

  @Test("a file that is smaller than its manifest says is refused by its size, before memory is allocated")
  func lies() async throws {
    let world = try AssetWorld(["a": 1])
    try HostilePaths.manifest([("a", Int(Int32.max))]).write(to: world.manifest)
    let assets = try AssetLibrary(at: world.url, budget: .max)
    await #expect { try await assets.data(for: "a") } throws: {
      "\($0)".contains("it has 1 bytes, but the manifest lists 2147483647")
    }
    #expect(assets.heldBytes == 0)
  }

  @Test("no manifest is made of a folder with names that aren't portable, and the error lists all of them")
  func refused() throws {
    let world = try AssetWorld(["good": 1])
    let before = try Data(contentsOf: world.manifest)
    for path in ["aux.png", "a:b", "Good", "e\u{301}", "trailing. ", "sub/a\u{202E}b"] {
      try world.write(Data(), to: path)
    }
    try FileManager.default.createSymbolicLink(at: world.file("link"), withDestinationURL: world.file("good"))
    do {
      try world.makeManifest()
      Issue.record("a manifest was made")
    } catch let error as AssetError {
      #expect(error.code == .refusedPath && error.message.contains("7 names"), "\(error)")
      for name in ["aux.png", "a:b", "Good", "trailing. ", "sub/a\\u{202e}b", "link"] {
        #expect(error.message.contains(name), "\(name)")
      }
    }
    #expect(try Data(contentsOf: world.manifest) == before)
  }

  @Test("an enormous file is refused when a manifest is made, and when a library is opened without one")
  func hugeFiles() throws {
    let world = try AssetWorld(["a": 3])
    let huge = world.url.appendingPathComponent("huge.bin")
    for name in ["huge.bin", "huge2.bin"] {
      let file = world.url.appendingPathComponent(name)
      #expect(FileManager.default.createFile(atPath: file.path, contents: nil))
      let handle = try FileHandle(forWritingTo: file)
      // As large as this file system allows, up to sizes whose sum overflows.
      for size in [UInt64(7) << 60, 7 << 50, 3 << 40, 1 << 32] where (try? handle.truncate(atOffset: size)) != nil {
        break
      }
      try handle.close()
    }
    #expect(assetErrorCode { try world.makeManifest() } == .tooLarge, "\(huge.path)")
    #expect(assetErrorCode { _ = try AssetLibrary(at: world.url, manifest: .none) } == .tooLarge)
  }
}
