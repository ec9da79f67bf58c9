import Foundation
import KeepsakeReplication

/// One file of a folder's state: what one exchange accepted, complete and never changed, or a snapshot of everything.
///
/// The first line says what it is, the second is the SHA-256 of the rest, and the rest is JSON. The file's name means
/// nothing: a segment is identified by the hash of all its bytes.
struct StateSegment: Hashable, Sendable {
  /// What is kept of a segment after its items are joined.
  struct Links: Hashable, Sendable {
    /// What the same store wrote before; nil for its first segment.
    var previous: SegmentHash?
    /// Segments of other stores that the store had when it wrote this one.
    var seen: [SegmentHash]
    /// For a snapshot: the segments whose items are all in it, the newest first. Empty otherwise.
    var replaces: [SegmentHash]

    var isSnapshot: Bool { !replaces.isEmpty }
  }
  private struct Body: Codable {
    var container: ContainerID
    var previous: SegmentHash?
    var seen: [SegmentHash]
    var replaces: [SegmentHash]
    var cells: [CellUpdate]
    var versions: [VersionRecord]
  }
  /// Another first line means another format, which is left alone.
  private static let magic = Data("keepsake-state 1\n".utf8)

  let hash: SegmentHash
  let container: ContainerID
  let links: Links
  let cells: [CellUpdate]
  let versions: [VersionRecord]
  /// The size of the file.
  let byteCount: Int

  /// Encodes a segment as a file.
  static func encoded(
    _ container: ContainerID, _ links: Links, cells: [CellUpdate], versions: [VersionRecord]
  ) throws -> (segment: StateSegment, bytes: Data) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // The list of versions is the end of the JSON: most of them need no general encoder.
    var body = try encoder.encode(
      Body(
        container: container, previous: links.previous, seen: links.seen, replaces: links.replaces, cells: cells,
        versions: [])
    ).dropLast(2)
    for (index, version) in versions.enumerated() {
      if index > 0 { body.append(UInt8(ascii: ",")) }
      body.append(try PlainRecord.json(of: version) ?? encoder.encode(version))
    }
    body.append(contentsOf: "]}".utf8)
    let bytes = magic + Data("\(ContentHash(of: body))\n".utf8) + body
    return (
      StateSegment(
        hash: ContentHash(of: bytes), container: container, links: links, cells: cells, versions: versions,
        byteCount: bytes.count),
      bytes
    )
  }

  private init(
    hash: SegmentHash, container: ContainerID, links: Links, cells: [CellUpdate], versions: [VersionRecord],
    byteCount: Int
  ) {
    self.hash = hash
    self.container = container
    self.links = links
    self.cells = cells
    self.versions = versions
    self.byteCount = byteCount
  }

  /// Decodes a file; nil if it isn't a complete segment that a correct device writes.
  init?(_ bytes: Data) {
    let headCount = Self.magic.count + 65
    guard bytes.count > headCount, bytes.count <= FolderLimits.segmentBytes,
      bytes.prefix(Self.magic.count) == Self.magic
    else {
      return nil
    }
    let line = bytes.dropFirst(Self.magic.count).prefix(65)
    let body = Data(bytes.dropFirst(headCount))
    guard line.last == UInt8(ascii: "\n"), let checksum = ContentHash(String(decoding: line.dropLast(), as: UTF8.self)),
      checksum == ContentHash(of: body), let body = try? JSONDecoder().decode(Body.self, from: body)
    else { return nil }
    let links = Links(previous: body.previous, seen: body.seen, replaces: body.replaces)
    guard links.seen.count <= FolderLimits.seen, links.replaces.count <= FolderLimits.replaced else { return nil }
    guard body.cells.allSatisfy({ ExchangeRules.objection(to: $0) == nil }), Self.areSound(body.versions) else {
      return nil
    }
    self.init(
      hash: ContentHash(of: bytes), container: body.container, links: links, cells: body.cells, versions: body.versions,
      byteCount: bytes.count)
  }

  /// Returns whether the versions obey the rules, and agree with each other.
  private static func areSound(_ versions: [VersionRecord]) -> Bool {
    var slots: [VersionID: String] = [:]
    for version in versions {
      guard ExchangeRules.objection(to: version) == nil, slots.updateValue(version.slot, forKey: version.id) == nil
      else { return false }
    }
    for version in versions {
      for id in version.covers {
        if let slot = slots[id], slot != version.slot { return false }
      }
    }
    return true
  }

  /// The mark in a cursor of a store that has written this segment and all before it.
  static func mark(of hash: SegmentHash) -> UInt64 {
    let mark = hash.bytes.prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    return mark == 0 ? 1 : mark
  }

  /// The mark in the cursor of a device that has written nothing to this container.
  static func mark(ofReaderIn container: ContainerID) -> UInt64 {
    mark(of: ContentHash(of: Data("keepsake reader \(container)".utf8)))
  }
}
