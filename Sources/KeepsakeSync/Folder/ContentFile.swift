import Foundation
import KeepsakeReplication

/// The file of one content: a line that describes it, and the frame.
///
///     keepsake-content 1 <hash> <plain bytes> <base, or -> <frame bytes> <checksum>
///
/// The checksum is the SHA-256 of everything before it in the line, followed by the SHA-256 of the frame.
enum ContentFile {
  struct Head: Hashable, Sendable {
    var hash: ContentHash
    var length: Int
    var base: ContentHash?
    var frameBytes: Int
    var checksum: ContentHash
    /// Bytes of the line, including its end.
    var byteCount: Int

    var fileBytes: Int64 { Int64(byteCount) + Int64(frameBytes) }
  }
  /// The largest frame, as over HTTP, plus the line.
  static let maximumBytes = SyncLimits.contentBytes + FolderLimits.contentHeadBytes

  static func encoded(_ content: EncodedContent) -> Data {
    let claim = claim(content.hash, content.length, content.base, content.bytes.count)
    var file = Data("\(claim) \(checksum(claim, content.bytes))\n".utf8)
    file.append(content.bytes)
    return file
  }

  private static func claim(_ hash: ContentHash, _ length: Int, _ base: ContentHash?, _ frameBytes: Int) -> String {
    "keepsake-content 1 \(hash) \(length) \(base?.description ?? "-") \(frameBytes)"
  }

  private static func checksum(_ claim: String, _ frame: Data) -> ContentHash {
    ContentHash(of: Data("\(claim) \(ContentHash(of: frame))".utf8))
  }

  /// Parses the line at the beginning of a file; nil if it isn't valid.
  static func head(of bytes: Data) -> Head? {
    guard let end = bytes.prefix(FolderLimits.contentHeadBytes).firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    let words = String(decoding: bytes[bytes.startIndex..<end], as: UTF8.self).split(
      separator: " ", omittingEmptySubsequences: false)
    guard words.count == 7, words[0] == "keepsake-content", words[1] == "1", let hash = ContentHash(words[2]),
      let length = Int(words[3]), (0...ExchangeRules.maximumContentBytes).contains(length),
      let frameBytes = Int(words[5]), (0...SyncLimits.contentBytes).contains(frameBytes),
      let checksum = ContentHash(words[6])
    else { return nil }
    var base: ContentHash?
    if words[4] != "-" {
      guard let named = ContentHash(words[4]), named != hash else { return nil }
      base = named
    }
    return Head(
      hash: hash, length: length, base: base, frameBytes: frameBytes, checksum: checksum,
      byteCount: bytes.distance(from: bytes.startIndex, to: end) + 1)
  }

  /// Returns the content of a complete file; nil if anything in it isn't as it was written.
  static func decoded(_ bytes: Data) -> EncodedContent? {
    guard let head = head(of: bytes), head.fileBytes == Int64(bytes.count) else { return nil }
    let frame = Data(bytes.dropFirst(head.byteCount))
    guard checksum(claim(head.hash, head.length, head.base, head.frameBytes), frame) == head.checksum else {
      return nil
    }
    return EncodedContent(hash: head.hash, length: head.length, base: head.base, bytes: frame)
  }
}
