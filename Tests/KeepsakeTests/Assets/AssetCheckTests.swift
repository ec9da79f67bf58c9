import Foundation
import Keepsake
import TestSupport
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A broken installation is reported in full before play, and damaged assets are never loaded.
@Suite struct AssetCheckTests {
  @Test("a check reports all missing, damaged, stale, unreadable and extra files, and loading them throws the same")
  func report() async throws {
    let world = try AssetWorld(["gone": 10, "Images/altered": 10, "cut": 10, "edited": 10, "linked": 10, "good": 10])
    let sound = try await AssetLibrary(at: world.url).check(.full)
    #expect(sound.isSound && sound.assets == 6 && sound.hashed == 6 && sound.findings.isEmpty)
    try FileManager.default.removeItem(at: world.file("gone"))
    try world.write(Data(count: 10), to: "Images/altered")
    try world.write(Data(count: 9), to: "cut")
    try world.write(Data(count: 10), to: "edited", isNewer: true)
    try world.write(Data("?".utf8), to: "Images/more.txt")
    try FileManager.default.removeItem(at: world.file("linked"))
    try FileManager.default.createSymbolicLink(at: world.file("linked"), withDestinationURL: world.file("good"))
    let assets = try AssetLibrary(at: world.url)
    let expected: [String: AssetReport.Kind] = [
      "gone": .missing, "Images/altered": .damaged, "cut": .damaged, "edited": .stale, "linked": .unreadable,
      "Images/more.txt": .extra,
    ]
    for report in [try await assets.check(.full), try await onThread { try assets.check(.full) }] {
      #expect(Dictionary(uniqueKeysWithValues: report.findings.map { ($0.path, $0.kind) }) == expected)
      #expect(report.findings.map(\.path) == report.findings.map(\.path).sorted() && !report.isSound)
      for finding in report.findings {
        #expect(finding.message.contains(finding.path) && report.description.contains(finding.message))
      }
      #expect(report.findings(.damaged).count == 2)
      #expect(throws: AssetReport.self) { try report.throwIfUnsound() }
    }
    for (path, kind) in expected {
      let code: AssetError.Code =
        switch kind {
        case .missing: .missing
        case .damaged: .damaged
        case .stale: .stale
        case .unreadable: .unreadable
        case .extra: .unknown
        }
      await #expect { try await assets.data(for: path) } throws: { error in
        (error as? AssetError)?.code == code && (error as? AssetError)?.path == path
      }
      #expect(assets[path] == nil)
    }
    let batch = assets.load(["good", "gone", "cut"])
    await #expect { try await batch.waitUntilLoaded() } throws: { "\($0)".contains("2 of 3") }
    #expect(batch.failures.count == 2 && assets["good"] == world.bytes["good"])
    // Once the file is restored, it can be loaded.
    try world.write(try #require(world.bytes["gone"]), to: "gone")
    #expect(try await assets.data(for: "gone") == world.bytes["gone"])
  }

  @Test("the quick check hashes only files changed after the manifest was made; extra files alone are no failure")
  func quick() async throws {
    let world = try AssetWorld(["altered": 10, "edited": 10, "touched": 10])
    try world.write(Data(count: 10), to: "altered")
    try world.write(Data(count: 10), to: "edited", isNewer: true)
    try world.write(try #require(world.bytes["touched"]), to: "touched", isNewer: true)
    let assets = try AssetLibrary(at: world.url)
    let report = try await assets.check()
    #expect(report.findings.map(\.path) == ["edited"] && report.hashed == 2)
    #expect(try await assets.check(.full).findings.map(\.path) == ["altered", "edited"])
    let extra = try AssetWorld(["a": 1])
    try extra.write(Data(), to: "notes.txt")
    try extra.write(Data(), to: ".hidden")
    let told = try await AssetLibrary(at: extra.url).check()
    #expect(told.isSound && told.findings.map(\.kind) == [.extra])
    try told.throwIfUnsound()
  }

  @Test("a check reports its progress, and ends early if its task is cancelled")
  func watched() async throws {
    let world = try AssetWorld(["a": 300_000, "b": 100, "c": 0])
    let assets = try AssetLibrary(at: world.url)
    let seen = try await onThread {
      var seen: [Double] = []
      _ = try assets.check(.full) { seen.append($0.fraction) }
      return seen
    }
    #expect(seen == seen.sorted() && seen.first == 0 && seen.last == 1 && seen.count > 4, "\(seen)")
    let gate = ReadGate(holding: ["told"])
    let task = Task { try await assets.check(.full) { _ in gate.pass("told") } }
    try await onThread { gate.waitFor(["told"]) }
    task.cancel()
    await #expect(throws: CancellationError.self) { _ = try await task.value }
    gate.open("told")
    #expect(gate.reads.count <= 2, "a cancelled check stops early")
  }

  @Test(
    "a path that leads out of the folder or is invalid on some system is refused, also in a manifest",
    arguments: HostilePaths.all)
  func hostile(path: String) async throws {
    let world = try AssetWorld(["Images/Ship.png": 10])
    let assets = try AssetLibrary(at: world.url)
    let folderless = try AssetLibrary(at: world.url, manifest: .none)
    for assets in [assets, folderless] {
      await #expect { try await assets.data(for: path) } throws: { ($0 as? AssetError)?.code == .refusedPath }
      #expect(assetErrorCode { _ = try assets.url(for: path) } == .refusedPath)
      #expect(
        assets.load([path]).failures.map(\.code) == [.refusedPath] && assets[path] == nil
          && assets.size(of: path) == nil)
    }
    // A manifest that lists the path is refused, although its checksum is right.
    try HostilePaths.manifest([(path, 10)]).write(to: world.manifest)
    #expect(assetErrorCode { _ = try AssetLibrary(at: world.url) } == .damagedManifest)
  }

  @Test("a path in another Unicode normalization form names the same asset; one in another letter case doesn't")
  func spellings() async throws {
    let world = try AssetWorld(["Caf\u{E9}/\u{C5}.png": 10])
    let assets = try AssetLibrary(at: world.url)
    #expect(try await assets.data(for: "Cafe\u{301}/A\u{30A}.png") == world.bytes["Caf\u{E9}/\u{C5}.png"])
    await #expect { try await assets.data(for: "caf\u{E9}/\u{C5}.png") } throws: {
      ($0 as? AssetError)?.code == .unknown
    }
  }

  @Test("a symbolic link in the folder is never followed, even if made while the game runs; the folder may be one")
  func links() async throws {
    let world = try AssetWorld(["Images/Ship.png": 10, "other": 10])
    let outside = try TemporaryFolder()
    let bytes = try #require(world.bytes["Images/Ship.png"])
    try bytes.write(to: outside.url.appendingPathComponent("Ship.png"))
    let assets = try AssetLibrary(at: world.url)
    #expect(try assets.url(for: "Images/Ship.png").path == world.file("Images/Ship.png").path)
    // The folder is replaced by a link while the game runs; the link even leads to the right bytes.
    try FileManager.default.removeItem(at: world.file("Images"))
    try FileManager.default.createSymbolicLink(at: world.file("Images"), withDestinationURL: outside.url)
    await #expect { try await assets.data(for: "Images/Ship.png") } throws: { ($0 as? AssetError)?.code == .unreadable }
    #expect(assetErrorCode { _ = try assets.url(for: "Images/Ship.png") } == .unreadable)
    #expect(
      try await assets.check().findings.map(\.kind) == [.extra, .unreadable], "the link itself, and the asset behind it"
    )
    // If the library's folder itself is a link, it is followed.
    let link = outside.url.appendingPathComponent("link")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: world.url)
    #expect(try await AssetLibrary(at: link).data(for: "other") == world.bytes["other"])
  }

  @Test("a pipe or folder at an asset's path throws instead of blocking, as does a library that isn't a folder")
  func otherKinds() async throws {
    let world = try AssetWorld(["pipe": 0, "folder": 0, "good": 1])
    for path in ["pipe", "folder"] { try FileManager.default.removeItem(at: world.file(path)) }
    try #require(mkfifo(world.file("pipe").path, 0o600) == 0)
    try FileManager.default.createDirectory(at: world.file("folder"), withIntermediateDirectories: true)
    let assets = try AssetLibrary(at: world.url)
    for path in ["pipe", "folder"] {
      await #expect { try await assets.data(for: path) } throws: { ($0 as? AssetError)?.code == .unreadable }
    }
    #expect(Set(try await assets.check().findings.map(\.kind)) == [.unreadable])
    #expect(try await assets.data(for: "good") == world.bytes["good"])
    #expect(assetErrorCode { _ = try AssetLibrary(at: world.file("good")) } == .missing)
    #expect(assetErrorCode { _ = try AssetLibrary(at: world.file("nowhere")) } == .missing)
  }

  @Test("loading and checking write nothing: sizes, dates and permissions in the folder are unchanged")
  func writesNothing() async throws {
    let world = try AssetWorld(["a": 100, "Images/b": 100])
    func state() throws -> [String: [String]] {
      let files =
        try #require(FileManager.default.enumerator(atPath: world.url.path)).compactMap { $0 as? String } + ["."]
      return try Dictionary(
        uniqueKeysWithValues: files.map { file in
          let attributes = try FileManager.default.attributesOfItem(atPath: world.file(file).path)
          return (
            file,
            [FileAttributeKey.size, .modificationDate, .posixPermissions].map {
              "\(String(describing: attributes[$0]))"
            }
          )
        })
    }
    let before = try state()
    let assets = try AssetLibrary(at: world.url, largeFiles: .mapped)
    try await assets.load(assets.paths).waitUntilLoaded()
    _ = try await assets.check(.full)
    #expect(try state() == before && before.count == 5)
  }

  @Test("a library without a manifest uses the files that it finds, and reports one that changes as stale")
  func withoutManifest() async throws {
    let world = try AssetWorld(["a": 100])
    try FileManager.default.removeItem(at: world.manifest)
    #expect(assetErrorCode { _ = try AssetLibrary(at: world.url) } == .noManifest)
    let assets = try AssetLibrary(at: world.url, manifest: .none)
    #expect(assets.paths == ["a"])
    #expect(try await assets.data(for: "a") == world.bytes["a"])
    #expect(try await assets.check(.full).isSound)
    assets.removeUnpinned()
    try world.write(Data(count: 50), to: "a")
    await #expect { try await assets.data(for: "a") } throws: { ($0 as? AssetError)?.code == .stale }
  }
}

/// Paths that lead out of the folder, or are invalid, on some system.
enum HostilePaths {
  static let all: [String] = [
    "", "/", "/etc/passwd", "..", "../Ship.png", "Images/../../Ship.png", "Images/..", ".", "./Images/Ship.png",
    "Images/./Ship.png",
    "Images//Ship.png", "Images/", "Images\\Ship.png", "..\\Ship.png", "C:/Ship.png", "C:Ship.png",
    "Images/Ship.png:stream",
    "\\\\server\\share", "//server/share", "Images/\0", "Images/Ship.png\0.txt", "a\nb", "a\u{85}b", "a\u{7F}",
    "a\u{2028}b", "a\u{202E}b",
    "con", "CON", "Images/aux.png", "nul .txt", "com1", "lpt\u{B9}.x", "conin$", "Images/Ship.png.", "Images/Ship.png ",
    "a./b", ".hidden",
    "Images/.git/config", "a*", "a?", "a\"", "a<", "a>", "a|", String(repeating: "x", count: 241), "a/\u{301}../b/..",
    Array(repeating: "p", count: 33).joined(separator: "/"), String(repeating: "x/", count: 20_000) + "y",
  ]

  /// The bytes of a manifest with these assets, valid or not, and a right checksum.
  static func manifest(_ assets: [(path: String, size: Int)], format: Int = 1) throws -> Data {
    let hash = ContentHash(of: Data())
    let lines = assets.map { "\(hash) \($0.size) \($0.path)\n" }.joined()
    let list = assets.map { ["path": $0.path, "size": $0.size, "sha256": hash.description] as [String: Any] }
    let file: [String: Any] = [
      "format": format, "checksum": ContentHash(of: Data(lines.utf8)).description, "assets": list,
    ]
    return try JSONSerialization.data(withJSONObject: file)
  }
}
