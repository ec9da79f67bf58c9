import Crypto
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// A file that a player sends to support, or copies to another machine: whatever happens to it on the way, reading it
/// gives the same save or an error.
@Suite struct SaveFileTests {
  static let secret = Data((0..<32).map { UInt8($0) })
  static let game = "com.example.space"
  static let kinds: [Seal.Kind] = [.none, .signed, .sealed]

  private static func seal(_ kind: Seal.Kind, secret: Data = secret, game: String = game, player: String? = nil)
    -> FileSeal
  {
    switch kind {
    case .none: .none
    case .signed: FileSeal(.signed(secret, player: player), kind: .signed, game: game)
    case .sealed: FileSeal(.sealed(secret, player: player), kind: .sealed, game: game)
    }
  }

  private static let metadata = SaveMetadata(
    title: "Höhle \u{0}\"", playtime: 61.5, progress: 0.25, thumbnail: Data([0, 255, 13]), custom: ["hero": "Ada"])
  private static let plain = Data("the world, the world and the world".utf8)

  private static func save(_ bytes: Data = plain) -> SaveFile {
    SaveFile(record(7, slot: "main", length: bytes.count, metadata: metadata, savedAt: 1_234_567), bytes: bytes)
  }

  private func expectSame(
    _ read: SaveFile, _ bytes: Data = plain, _ location: Testing.SourceLocation = #_sourceLocation
  ) {
    let isSame = read.bytes == bytes
    #expect(isSame && read.slot == "main" && read.version == id(7), sourceLocation: location)
    #expect(read.savedAtMilliseconds == 1_234_567 && read.metadata == Self.metadata, sourceLocation: location)
  }

  /// The file with its checksum corrected, as somebody could do who knows the format.
  private static func resummed(_ file: Data) -> Data {
    let front = file.dropLast(32)
    return front + Data(SHA256.hash(data: front))
  }

  @Test("a save is read with its metadata as it was written, also from a slice of other bytes", arguments: kinds)
  func roundTrip(kind: Seal.Kind) throws {
    var random = SeededRandom(seed: 5)
    for bytes in [Self.plain, Data(), random.bytes(5 << 20)] {
      let file = try Self.save(bytes).encoded(Self.seal(kind))
      expectSame(try SaveFile(file, Self.seal(kind)), bytes)
      let slice = (Data([1, 2, 3]) + file).dropFirst(3)
      expectSame(try SaveFile(slice, Self.seal(kind)), bytes)
    }
  }

  @Test("a sealed file shows nothing of the save, and no two files with a seal are equal", arguments: kinds)
  func hides(kind: Seal.Kind) throws {
    var random = SeededRandom(seed: 6)
    let file = try Self.save(random.bytes(200)).encoded(Self.seal(kind))
    let shows = file.range(of: Data("Ada".utf8)) != nil
    #expect(shows == (kind != .sealed))
    let isAlike = try Self.save(Self.plain).encoded(Self.seal(kind)) == Self.save(Self.plain).encoded(Self.seal(kind))
    #expect(isAlike == (kind == .none))
  }

  @Test("any flipped bit of a small file is detected, and never gives another save", arguments: kinds)
  func flips(kind: Seal.Kind) async throws {
    let seal = Self.seal(kind)
    let file = try Self.save().encoded(seal)
    let wrong = try await onThread {
      file.indices.flatMap { index in
        (0..<8).compactMap { bit -> String? in
          var altered = file
          altered[index] ^= 1 << bit
          let code = errorCode { _ = try SaveFile(altered, seal) }
          return code == (index < 8 ? .misuse : .damaged)
            ? nil : "byte \(index), bit \(bit): \(code.map { "\($0)" } ?? "taken")"
        }
      }
    }
    #expect(wrong == [])
  }

  @Test(
    "with any bit flipped and the checksum corrected, a seal detects each, and without a seal no other bytes are read",
    arguments: kinds)
  func forgeries(kind: Seal.Kind) async throws {
    let seal = Self.seal(kind)
    let file = try Self.save().encoded(seal)
    let (codes, taken, others) = try await onThread {
      var codes: [StoreError.Code: Int] = [:]
      var (taken, others) = (0, 0)
      for index in 8..<file.count - 32 {
        for bit in 0..<8 {
          var altered = file
          altered[index] ^= 1 << bit
          do {
            let read = try SaveFile(Self.resummed(altered), seal)
            taken += 1
            // The head of an unsealed file can be changed, but it contains the hash of the bytes.
            if read.bytes != Self.plain { others += 1 }
          } catch let error as StoreError {
            codes[error.code, default: 0] += 1
          }
        }
      }
      return (codes, taken, others)
    }
    #expect((taken == 0) == (kind != .none), "\(taken) altered files were accepted")
    #expect(others == 0, "\(others) files gave other bytes")
    #expect((codes[.damaged] ?? 0) > 0)
    if kind != .none { #expect((codes[.tampered] ?? 0) > 1_000, "\(codes)") }
  }

  @Test("a file that is truncated anywhere, or has additional bytes, is refused", arguments: kinds)
  func lengths(kind: Seal.Kind) throws {
    let seal = Self.seal(kind)
    let file = try Self.save().encoded(seal)
    for count in 0..<file.count {
      #expect(
        errorCode { _ = try SaveFile(file.prefix(count), seal) } == (count < 8 ? .misuse : .damaged), "\(count) bytes")
      let resummed = count < 48 ? file.prefix(count) : Self.resummed(file.prefix(count))
      let code = errorCode { _ = try SaveFile(resummed, seal) }
      #expect(
        code == (count < 8 ? .misuse : .damaged) || code == .tampered && kind != .none,
        "\(count) bytes, with a right checksum")
    }
    #expect(errorCode { _ = try SaveFile(file + Data([0]), seal) } == .damaged)
    let code = errorCode { _ = try SaveFile(Self.resummed(file.dropLast(32) + Data(count: 33)), seal) }
    #expect(code == .damaged || code == .tampered && kind != .none)
  }

  @Test("a file of a newer release throws `newerFormat`, and a damaged one that only looks newer throws `damaged`")
  func newer() throws {
    var file = try Self.save().encoded(.none)
    file[8] = 2
    #expect(errorCode { _ = try SaveFile(file, FileSeal.none) } == .damaged)
    #expect(errorCode { _ = try SaveFile(Self.resummed(file), FileSeal.none) } == .newerFormat)
    file[8] = 1
    file[10] = 3
    #expect(errorCode { _ = try SaveFile(Self.resummed(file), FileSeal.none) } == .newerFormat)
  }

  /// An unsealed file with this head and this frame, and correct lengths, unless `count` is given as the head's length.
  private static func forged(head: String, frame: Data, claiming count: Int? = nil) -> Data {
    var file = SaveFileEnvelope.magic
    file.append(littleEndian: UInt16(1))
    file.append(littleEndian: UInt16(0))
    file.append(littleEndian: UInt32(0))
    file.append(littleEndian: UInt32(count ?? head.utf8.count))
    file.append(contentsOf: head.utf8)
    file.append(frame)
    return resummed(file + Data(count: 32))
  }

  private static func head(length: Int, slot: String = "main", of bytes: Data = plain) -> String {
    """
    {"length":\(length),"metadata":{"custom":{}},"savedAtMilliseconds":5,"sha256":"\(ContentHash(of: bytes))",\
    "slot":"\(slot)","version":"\(id(7))"}
    """
  }

  @Test("impossible lengths, invalid heads, and frames with more or fewer bytes than declared are refused")
  func lies() throws {
    let frame = try Zstd.compress(Self.plain)
    func code(_ file: Data) -> StoreError.Code? { errorCode { _ = try SaveFile(file, FileSeal.none) } }
    #expect(code(Self.forged(head: Self.head(length: Self.plain.count), frame: frame)) == nil)
    for count in [0, 1, Int(UInt32.max), 1 << 20] {
      #expect(
        code(Self.forged(head: Self.head(length: Self.plain.count), frame: frame, claiming: count)) == .damaged,
        "\(count)")
    }
    for length in [-1, 0, Self.plain.count - 1, Self.plain.count + 1] {
      #expect(code(Self.forged(head: Self.head(length: length), frame: frame)) == .damaged, "\(length)")
    }
    #expect(code(Self.forged(head: Self.head(length: (256 << 20) + 1), frame: frame)) == .tooLarge)
    #expect(code(Self.forged(head: Self.head(length: Self.plain.count, slot: ""), frame: frame)) == .damaged)
    #expect(code(Self.forged(head: Self.head(length: Self.plain.count, of: Data()), frame: frame)) == .damaged)
    #expect(code(Self.forged(head: "[]", frame: frame)) == .damaged)
    #expect(code(Self.forged(head: String(repeating: "[", count: 100_000), frame: frame)) == .damaged)
    #expect(code(Self.forged(head: Self.head(length: Self.plain.count), frame: frame + frame)) == .damaged)
    #expect(code(Self.forged(head: Self.head(length: Self.plain.count), frame: Data("text".utf8))) == .damaged)
    // It is refused before memory is allocated for what it really contains.
    let zeros = try Zstd.compress(Data(count: 8 << 20))
    let bomb = Self.forged(head: Self.head(length: Self.plain.count), frame: zeros)
    #expect {
      try SaveFile(bomb, FileSeal.none)
    } throws: { ($0 as? StoreError)?.message.contains("longer than its header declares") == true }
  }

  @Test("a file that isn't a save, is too large or doesn't exist is refused, each with its own error", .hangLimit)
  func looksFirst() throws {
    let folder = try TemporaryFolder()
    func code(_ name: String) -> StoreError.Code? {
      errorCode { _ = try SaveFile.contents(of: folder.url.appendingPathComponent(name)) }
    }
    try Self.save().encoded(.none).write(to: folder.url.appendingPathComponent("good"))
    try Data("once upon a time".utf8).write(to: folder.url.appendingPathComponent("text"))
    try SaveFileEnvelope.magic.write(to: folder.url.appendingPathComponent("huge"))
    let huge = try FileHandle(forWritingTo: folder.url.appendingPathComponent("huge"))
    // A sparse file, which takes no room on the disk.
    try huge.truncate(atOffset: 1 << 40)
    try huge.close()
    #expect(code("good") == nil)
    #expect(code("text") == .misuse)
    #expect(code("huge") == .tooLarge)
    #expect(code("nothing") == .missing)
    #expect(code("") == .io)
  }

  @Test(
    "a file with a seal is read only with its game, player and secret, and an unsealed one only if the game allows that"
  )
  func bound() throws {
    func code(_ file: Data, _ seal: FileSeal?, adoptsUnsealed: Bool = false) -> StoreError.Code? {
      errorCode { _ = try SaveFile(file, seal, adoptsUnsealed: adoptsUnsealed) }
    }
    for kind in [Seal.Kind.signed, .sealed] {
      let file = try Self.save().encoded(Self.seal(kind, player: "ada"))
      #expect(code(file, Self.seal(kind, player: "ada")) == nil)
      // Whether the game signs or encrypts doesn't matter: the secret is the proof.
      #expect(code(file, Self.seal(kind == .signed ? .sealed : .signed, player: "ada")) == nil)
      #expect(code(file, Self.seal(kind, player: "bob")) == .wrongSecret)
      #expect(code(file, Self.seal(kind)) == .wrongSecret)
      #expect(code(file, Self.seal(kind, game: "com.example.other", player: "ada")) == .wrongSecret)
      #expect(code(file, Self.seal(kind, secret: Data(count: 32), player: "ada")) == .wrongSecret)
      #expect(code(file, FileSeal.none) == .otherSeal)
      #expect(code(file, nil) == (kind == .signed ? nil : .wrongSecret))
      let later = FileSeal(
        .signed(Data(count: 32), previous: [Self.secret], player: "ada"), kind: .signed, game: Self.game)
      #expect(code(file, later) == nil, "a secret of an earlier release")
      #expect(errorCode { _ = try Self.save().encoded(FileSeal(withoutSecret: kind, game: Self.game)) } == .wrongSecret)
    }
    let open = try Self.save().encoded(.none)
    #expect(code(open, Self.seal(.signed)) == .otherSeal)
    #expect(code(open, Self.seal(.signed), adoptsUnsealed: true) == nil)
    #expect(code(open, nil) == nil)
  }

  @Test("files of the first release can be read", arguments: golden)
  func reads(kind: Seal.Kind, file: String) throws {
    expectSame(try SaveFile(#require(Data(base64Encoded: file)), Self.seal(kind)))
  }

  /// Made by the first release.
  static let golden: [(Seal.Kind, String)] = [
    (
      .none,
      """
      i1NBVkUNChoBAAAAAAAAACQBAAB7Imxlbmd0aCI6MzQsIm1ldGFkYXRhIjp7ImN1c3RvbSI6eyJoZXJvIjoiQWRhIn0sInBsYXl0\
      aW1lIjo2MS41LCJwcm9ncmVzcyI6MC4yNSwidGh1bWJuYWlsIjoiQVA4TiIsInRpdGxlIjoiSMO2aGxlIFx1MDAwMFwiIn0sInNh\
      dmVkQXRNaWxsaXNlY29uZHMiOjEyMzQ1NjcsInNoYTI1NiI6ImYwZjVhOWMxMWZkZjFiMzFlMjkzNGZkYWU0ZGI4NGRjZDE0ODhi\
      NWMyMWI1ZDY3Mjg5OTE3N2ZjNmM3MGJiNmEiLCJzbG90IjoibWFpbiIsInZlcnNpb24iOiIwMDAwMDAwMDAwMDAwMDAwMDAwMDAw\
      MDAwMDAwMDAwNyJ9KLUv/SAivQAAeHRoZSB3b3JsZCwgIGFuZAIAMTdxUbyN8CkcSgjudB+3FKAxtW3QcoZBLNB9L8LVvP1E2aA0\
      ag==
      """
    ),
    (
      .signed,
      """
      i1NBVkUNChoBAAEAdQAAAHsiZ2FtZSI6ImNvbS5leGFtcGxlLnNwYWNlIiwiaGFzUGxheWVyIjpmYWxzZSwia2V5IjoiYWgwRmJn\
      PT0iLCJzYWx0Ijoia0xXZkJCOGRUV0hYWUVPNjNZK3kxVXlGSDJ5c1V1eGlQV1EzWjlFL0RUbz0ifSQBAAB7Imxlbmd0aCI6MzQs\
      Im1ldGFkYXRhIjp7ImN1c3RvbSI6eyJoZXJvIjoiQWRhIn0sInBsYXl0aW1lIjo2MS41LCJwcm9ncmVzcyI6MC4yNSwidGh1bWJu\
      YWlsIjoiQVA4TiIsInRpdGxlIjoiSMO2aGxlIFx1MDAwMFwiIn0sInNhdmVkQXRNaWxsaXNlY29uZHMiOjEyMzQ1NjcsInNoYTI1\
      NiI6ImYwZjVhOWMxMWZkZjFiMzFlMjkzNGZkYWU0ZGI4NGRjZDE0ODhiNWMyMWI1ZDY3Mjg5OTE3N2ZjNmM3MGJiNmEiLCJzbG90\
      IjoibWFpbiIsInZlcnNpb24iOiIwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwNyJ9KLUv/SAivQAAeHRoZSB3b3JsZCwg\
      IGFuZAIAMTdxUbxTYHI25xiI1pxhvvVts2JLtntXX8l9un/3IhL0wOXqZOep/9JjikHbc3vBCGP+arOH8Hi23iCeemMLF2jOFdpY
      """
    ),
    (
      .sealed,
      """
      i1NBVkUNChoBAAIAdQAAAHsiZ2FtZSI6ImNvbS5leGFtcGxlLnNwYWNlIiwiaGFzUGxheWVyIjpmYWxzZSwia2V5IjoiYWgwRmJn\
      PT0iLCJzYWx0IjoiT0ZBcWZZd2FWU2QvMzZmbCs5U0p5MjF6V25hZ0JYN0U3ZnZkZSs5OEFzMD0ifZhWRAZBKbFKQO+hzl6ocJse\
      q0CZuZwPFZxbh/jnxzvmBSLQlin3FCBrFzibzw4F+IxZHqJJnB80KezQxiWjBLeCS2xz6dwR6vIBll5ArNON9tpYQX9NMMlvEEbh\
      yRgk4zMdCNMUUKvitJkEXOdMg5nIdmsgzUX2pZ8b+MLb78be8Vld2p6gAxkvVg3tWq5PONu57yKJkVws3KVWfS1YnxC/LwzP04ud\
      CI4LfnBnoziesnCUMMTuYEfKyaEjEKL2Wc1VW+eurbd2acvuCK2kHXmLbrBXKqwG2o4a4UEPrR1Pcwdbe3V419F9rzCERLBnEcs8\
      w4p0visb3YVo9Jkss+sGC/iSoZHqG+hT1+o6PH2JveiuAYGLRqNgYSO6kbJN63w2/nJDLWy37xG/P0TeYyAQlZUJHc1rfdMTn74A\
      KNkaGJcSH+mBydJG8WZT1nHlTLs0L2kI8TWy+1hjLPKHGiYZV977fXtCZbOphNuG2nDXWPEgocFswBWZ+4OpxF5tsv1ttbw=
      """
    ),
  ]
}
