package import Foundation
package import KeepsakeReplication

/// One saved game as one file: for a bug report, or to move it. Self-describing.
///
/// Its body is a head in JSON (where it came from, its metadata, its length and hash) and one zstd frame with the plain
/// bytes.
package struct SaveFile: Sendable {
  /// The head, in front of the bytes.
  struct Head: Codable {
    var slot: String
    var version: VersionID
    var savedAtMilliseconds: Int64
    var metadata: SaveMetadata
    /// Length of the plain bytes.
    var length: Int
    var sha256: ContentHash
  }
  /// Metadata takes at most 64 KiB, and at most six times that when escaped for JSON.
  private static let maximumHeadBytes = 1 << 20
  /// The maximum size of an exported save: bytes that don't compress become slightly larger in a frame.
  package static let maximumBytes =
    EncodedContent.maximumContentBytes + EncodedContent.maximumContentBytes / 128 + 2 * maximumHeadBytes

  /// The slot that it was exported from.
  package var slot: String
  /// The version that was exported.
  package var version: VersionID
  /// Milliseconds since 1970, by the clock of the device that saved it.
  package var savedAtMilliseconds: Int64
  package var metadata: SaveMetadata
  /// The bytes as the game encoded them.
  package var bytes: Data

  package init(_ record: VersionRecord, bytes: Data) {
    (slot, version, savedAtMilliseconds) = (record.slot, record.id, record.savedAtMilliseconds)
    (metadata, self.bytes) = (record.metadata, bytes)
  }

  // MARK: Writing

  /// Returns the file. Costs a compression, and memory for twice its output.
  ///
  /// - Throws: `StoreError`: `tooLarge` for more than the maximum size of a save, `wrongSecret` if the secret to seal
  ///   it with is missing.
  package func encoded(_ seal: FileSeal) throws -> Data {
    guard bytes.count <= EncodedContent.maximumContentBytes else {
      throw StoreError(.tooLarge, "the version \(version) is larger than a save may be")
    }
    let head = try JSONEncoder.ordered.encode(
      Head(
        slot: slot, version: version, savedAtMilliseconds: savedAtMilliseconds, metadata: metadata, length: bytes.count,
        sha256: ContentHash(of: bytes)))
    let frame = try Zstd.compress(bytes)
    var body = Data(capacity: 4 + head.count + frame.count)
    body.append(littleEndian: UInt32(head.count))
    body.append(head)
    body.append(frame)
    return try SaveFileEnvelope.closing(body, seal)
  }

  // MARK: Reading

  /// Reads a file, all of it or nothing. Takes no more memory than the plain bytes that are really there.
  ///
  /// - Parameters:
  ///   - seal: How the game seals files; nil for tools without the secret, which accept signed files without checking
  ///     them.
  ///   - adoptsUnsealed: Accepts a file without a seal although the game has one.
  ///   - maximumBytes: The most plain bytes, if that is less than a save may have.
  /// - Throws: `StoreError`: `misuse` if it isn't an exported save; `damaged`, `newerFormat`, `tooLarge`; `otherSeal`,
  ///   `wrongSecret`, `tampered`.
  package init(
    _ envelope: SaveFileEnvelope, _ seal: FileSeal?, adoptsUnsealed: Bool = false,
    maximumBytes: Int = EncodedContent.maximumContentBytes
  ) throws {
    let body = try envelope.opened(seal, adoptsUnsealed: adoptsUnsealed)
    guard body.count >= 4 else { throw SaveFileEnvelope.damaged("it is cut off") }
    let count = Int(body.littleEndian(at: 0) as UInt32)
    guard count <= Self.maximumHeadBytes, count <= body.count - 4 else {
      throw SaveFileEnvelope.damaged("its header has an invalid length")
    }
    let head = try Self.head(in: body.dropFirst(4).prefix(count))
    guard head.length <= maximumBytes else {
      throw StoreError(.tooLarge, "the exported save has more than \(maximumBytes) bytes in it")
    }
    bytes = try Self.bytes(in: body.dropFirst(4 + count), head)
    (slot, version, savedAtMilliseconds, metadata) = (head.slot, head.version, head.savedAtMilliseconds, head.metadata)
  }

  /// Reads a file from its bytes.
  package init(_ file: Data, _ seal: FileSeal?, adoptsUnsealed: Bool = false) throws {
    try self.init(SaveFileEnvelope(file), seal, adoptsUnsealed: adoptsUnsealed)
  }

  /// Returns the bytes of the file at `url`. Checks its beginning and its size before reading the rest.
  ///
  /// - Throws: `StoreError`: `missing`, `misuse` if it isn't an exported save, `tooLarge`, `io`.
  package static func contents(of url: URL) throws -> Data {
    let beginning: Data
    let size: UInt64
    do {
      let file = try FileHandle(forReadingFrom: url)
      defer { try? file.close() }  // Only read from: closing can lose nothing.
      beginning = try file.read(upToCount: SaveFileEnvelope.magic.count) ?? Data()
      size = try file.seekToEnd()
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      throw StoreError(.missing, "there is no file \(url.path)")
    } catch {
      throw StoreError(.io, "the file \(url.path) can't be read", cause: error)
    }
    guard SaveFileEnvelope.isSaveFile(beginning) else {
      throw StoreError(.misuse, "\(url.path) is not an exported save")
    }
    guard size <= UInt64(maximumBytes) else {
      throw StoreError(.tooLarge, "\(url.path) is larger than any exported save")
    }
    guard let bytes = try AtomicFile.read(url, maximumBytes: maximumBytes) else {
      throw StoreError(.missing, "there is no file \(url.path)")
    }
    return bytes
  }

  private static func head(in json: Data) throws -> Head {
    let head: Head
    do {
      head = try JSONDecoder().decode(Head.self, from: json)
    } catch {
      throw StoreError(.damaged, "the exported save is damaged: its header can't be decoded", cause: error)
    }
    // What no store would accept isn't read either.
    let record = VersionRecord(
      id: head.version, slot: head.slot, covers: [], contents: [], length: head.length, metadata: head.metadata,
      savedAtMilliseconds: head.savedAtMilliseconds, writer: WriterID(0), provisional: false)
    if let objection = ExchangeRules.objection(to: record) { throw SaveFileEnvelope.damaged(objection.message) }
    guard head.length <= EncodedContent.maximumContentBytes else {
      throw StoreError(.tooLarge, "the exported save declares a length that no save may have")
    }
    return head
  }

  private static func bytes(in frame: Data, _ head: Head) throws -> Data {
    let plain: Data
    do {
      plain = try Zstd.expand(frame, maximumBytes: head.length)
    } catch let error as StoreError where error.code == .damaged {
      throw SaveFileEnvelope.damaged(error.message)
    } catch let error as StoreError where error.code == .tooLarge {
      throw SaveFileEnvelope.damaged("it is longer than its header declares")
    }
    guard plain.count == head.length, ContentHash(of: plain) == head.sha256 else {
      throw SaveFileEnvelope.damaged("its bytes don't match their hash")
    }
    return plain
  }
}
