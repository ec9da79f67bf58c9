import Foundation
import Keepsake
import TestSupport
import Testing

@testable import KeepsakeArchive

/// A save as a single file: it is read back unchanged, and no game overwrites the save of a newer one.
@Suite struct ArchiveFileTests {
  private let folder: URL
  private let url: URL

  init() throws {
    folder = TemporaryFolder.url("files")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    url = folder.appendingPathComponent("world.save")
  }

  /// Runs a test, then removes its folder. A failure to remove it is ignored.
  private func cleaning(_ body: () throws -> Void) rethrows {
    defer { try? FileManager.default.removeItem(at: folder) }
    try body()
  }

  private func code(_ body: () throws -> Void) -> ArchiveError.Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? ArchiveError)?.code
    }
  }

  private let words = (0..<2_000).map { "word \($0 % 50)" }

  @Test("a save can be read with any compression; by default, only saves that get smaller are compressed")
  func compressions() throws {
    try cleaning {
      let plain = try Archive.encode(words)
      for compression in [ArchiveCompression.none, .automatic, .zstd(level: -5), .zstd(level: 19), .zstd(level: 999)] {
        try Archive.write(words, to: url, compression: compression)
        #expect(try Archive.read([String].self, from: url) == words)
        let file = try Data(contentsOf: url)
        #expect(
          compression == .none ? file == plain : file.count < plain.count / 4 && ArchiveFrame.isFrame(file),
          "\(compression)")
      }
      // Neither a file of one block nor random bytes get smaller.
      try Archive.write([1, 2, 3], to: url)
      #expect(try Data(contentsOf: url) == Archive.encode([1, 2, 3]))
      var random = SystemRandomNumberGenerator()
      let noise = Data((0..<100_000).map { _ in UInt8.random(in: 0...255, using: &random) })
      try Archive.write(noise, to: url)
      #expect(try Data(contentsOf: url) == Archive.encode(noise))
      try Archive.write(noise, to: url, compression: .zstd(level: 3))
      #expect(try Archive.read(Data.self, from: url) == noise)
    }
  }

  @Test("a compressed save that is truncated or altered anywhere is refused, or decodes to the same value")
  func damage() throws {
    try cleaning {
      try Archive.write(words, to: url, compression: .zstd(level: 3))
      let good = try Data(contentsOf: url)
      for length in 0..<good.count {
        try good.prefix(length).write(to: url)
        #expect(code { _ = try Archive.read([String].self, from: url) } == .damaged, "cut off after \(length)")
      }
      for index in good.indices {
        var bad = good
        bad[index] ^= 0x10
        try bad.write(to: url)
        let code = code {
          let read = try Archive.read([String].self, from: url)
          #expect(read == words, "byte \(index)")
        }
        #expect([nil, .damaged, .limit, .notAnArchive].contains(code), "byte \(index): \(String(describing: code))")
      }
      let skippable = Data([0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0])
      for bad in [good + Data([0]), good + good, good + skippable] {
        try bad.write(to: url)
        #expect(code { _ = try Archive.read([String].self, from: url) } == .damaged)
      }
      // A frame inside a frame is not an archive.
      try Zstd.compress(good).write(to: url)
      #expect(code { _ = try Archive.read([String].self, from: url) } == .notAnArchive)
    }
  }

  @Test("a small file that claims or contains more bytes than the limits allow is refused")
  func bombs() throws {
    try cleaning {
      var limits = ArchiveLimits.standard
      limits.archiveBytes = 1 << 20
      // The header declares the size of the content.
      try Zstd.compress(Data(count: 64 << 20)).write(to: url)
      #expect(code { _ = try Archive.read([String].self, from: url, limits: limits) } == .limit)
      // No declared size: a window of 1 MiB, and runs of 128 KiB of the same byte, 16 GiB in all.
      let block: [UInt8] = [0x02, 0x00, 0x10, 0x00]
      let runs = [UInt8]((0..<131_072).map { _ in block }.joined()) + [0x03, 0x00, 0x10, 0x00]
      try Data([0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x50] + runs).write(to: url)
      #expect(code { _ = try Archive.read([String].self, from: url, limits: limits) } == .limit)
      #expect(code { _ = try Archive.read([String].self, from: url) } == .limit)
      // Declares little and contains much: a single segment of 100 bytes by its header.
      try Data([0x28, 0xB5, 0x2F, 0xFD, 0x20, 100] + runs).write(to: url)
      #expect(code { _ = try Archive.read([String].self, from: url, limits: limits) } == .damaged)
      // Declares 2^60 bytes, contains 3.
      try Data([0x28, 0xB5, 0x2F, 0xFD, 0xE0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0x19, 0, 0, 1, 2, 3]).write(to: url)
      #expect(code { _ = try Archive.read([String].self, from: url, limits: limits) } == .limit)
      // Needs a window of 2 GiB.
      try Data([0x28, 0xB5, 0x2F, 0xFD, 0x00, 0xA8, 0x19, 0, 0, 1, 2, 3]).write(to: url)
      #expect(code { _ = try Archive.read([String].self, from: url, limits: limits) } == .limit)
    }
  }

  /// Writes `newer` with every compression, then tries to write `older` over it.
  private func isProtected<New: Archivable, Old: Archivable>(_ newer: New, _ older: Old, _ name: String) throws {
    for compression in [ArchiveCompression.none, .zstd(level: 1)] {
      try Archive.write(newer, to: url, compression: compression, replacingNewer: true)
      let before = try Data(contentsOf: url)
      #expect(code { try Archive.write(older, to: url) } == .tooNew, "\(name)")
      #expect(try Data(contentsOf: url) == before, "\(name)")
    }
    try Archive.write(older, to: url, replacingNewer: true)
    #expect(try Data(contentsOf: url) == Archive.encode(older), "\(name)")
    // A save of the same game or of an older one can be overwritten.
    try Archive.write(older, to: url)
    try Archive.write(newer, to: url)
  }

  @Test("writing over a newer game's save throws and leaves it unchanged, unless replacing it is allowed")
  func newerSaves() throws {
    try cleaning {
      try isProtected(Updated.Hero(), Outdated.Hero(), "root")
      try isProtected([Updated.Hero()], [Outdated.Hero()], "list")
      try isProtected(Updated.Party(), Outdated.Party(), "inside of lists and optionals")
      try isProtected([Updated.Renamed()], [Outdated.Hero()], "renamed")
      try isProtected(Updated.Band(), Outdated.Band(), "a class")
      try isProtected(Updated.Loose(), Outdated.Loose(), "inside of a hand-written value")
    }
  }

  @Test("a file of a later archive format can't be overwritten, unless it is damaged")
  func newerFormat() throws {
    try cleaning {
      var bytes = [UInt8](try Archive.encode(words).dropLast(8))
      bytes[8] = 2
      let sum = bytes.withUnsafeBytes { Checksum.xxh64($0) }
      for shift in stride(from: UInt64(0), to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: sum >> shift)) }
      try Data(bytes).write(to: url)
      #expect(code { try Archive.write(words, to: url) } == .tooNew)
      #expect(try Data(contentsOf: url) == Data(bytes))
      bytes[20] ^= 1
      try Data(bytes).write(to: url)
      try Archive.write(words, to: url)
      #expect(try Archive.read([String].self, from: url) == words)
    }
  }

  @Test("a damaged, empty or foreign file throws when it is read, and can be overwritten by a save")
  func replaced() throws {
    try cleaning {
      try Archive.write(Updated.Hero(), to: url)
      var damaged = try Data(contentsOf: url)
      damaged[20] ^= 1
      let cases: [(Data, ArchiveError.Code)] = [
        (damaged, .damaged), (Data(), .damaged), (Data("once upon a time".utf8), .notAnArchive),
        (try Zstd.compress(damaged), .damaged), (try Zstd.compress(damaged).dropLast(), .damaged),
      ]
      for (bytes, expected) in cases {
        try bytes.write(to: url)
        #expect(code { _ = try Archive.read(Outdated.Hero.self, from: url) } == expected)
        try Archive.write(Outdated.Hero(), to: url)
        #expect(try Archive.read(Outdated.Hero.self, from: url)?.health == 10)
      }
    }
  }
}

private enum Outdated {
  @Archivable struct Hero { var health = 10 }
  @Archivable struct Party { var heroes: [String: [Hero?]] = ["a": [Hero()]] }
  @Archivable(name: "Rider") final class Rider {
    var next: Rider?
    init() {}
  }
  @Archivable struct Band { var riders = [Rider()] }
  /// Has a field with a hand-written conformance, and one with the type itself.
  @Archivable struct Loose {
    var note = HandWritten()
    var hero: Hero?
  }
  struct HandWritten: Archivable {
    init() {}
    func encode(to writer: inout ArchiveWriter) throws { try writer.encode(Hero(), forKey: "hero") }
    init(from reader: inout ArchiveReader) throws {}
  }
}

private enum Updated {
  @Archivable(version: 2) struct Hero { var health = 10 }
  @Archivable(version: 2) struct Renamed { var health = 10 }
  @Archivable struct Party { var heroes: [String: [Hero?]] = ["a": [Hero()]] }
  @Archivable(name: "Rider", version: 3) final class Rider {
    var next: Rider?
    init() {}
  }
  @Archivable struct Band { var riders = [Rider()] }
  @Archivable struct Loose { var note = HandWritten() }
  struct HandWritten: Archivable {
    init() {}
    func encode(to writer: inout ArchiveWriter) throws { try writer.encode(Hero(), forKey: "hero") }
    init(from reader: inout ArchiveReader) throws {}
  }
}
