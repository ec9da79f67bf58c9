import Foundation

extension VersionRecord: Codable {
  private enum CodingKeys: String, CodingKey {
    case id, slot, covers, contents, length, metadata, savedAtMilliseconds, writer, provisional, tombstone
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    id = try container.decode(VersionID.self, forKey: .id)
    slot = try container.decode(String.self, forKey: .slot)
    covers = try container.decodeList(forKey: .covers)
    contents = try container.decodeList(forKey: .contents)
    length = try container.decodeIfPresent(Int.self, forKey: .length) ?? 0
    metadata = try container.decodeIfPresent(SaveMetadata.self, forKey: .metadata) ?? SaveMetadata()
    savedAtMilliseconds = try container.decode(Int64.self, forKey: .savedAtMilliseconds)
    writer = try container.decode(WriterID.self, forKey: .writer)
    provisional = try container.decodeFlag(forKey: .provisional)
    tombstone = try container.decodeFlag(forKey: .tombstone)
  }

  /// Omits what is empty, as in messages: most versions have little metadata and replace one other version.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(id, forKey: .id)
    try container.encode(slot, forKey: .slot)
    try container.encodeUnlessEmpty(covers, forKey: .covers)
    try container.encodeUnlessEmpty(contents, forKey: .contents)
    if length != 0 { try container.encode(length, forKey: .length) }
    if metadata != SaveMetadata() { try container.encode(metadata, forKey: .metadata) }
    try container.encode(savedAtMilliseconds, forKey: .savedAtMilliseconds)
    try container.encode(writer, forKey: .writer)
    try container.encodeIfTrue(provisional, forKey: .provisional)
    try container.encodeIfTrue(tombstone, forKey: .tombstone)
  }
}

extension SaveMetadata {
  private enum CodingKeys: String, CodingKey {
    case title, playtime, progress, thumbnail, custom
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    title = try container.decodeIfPresent(String.self, forKey: .title)
    playtime = try container.decodeIfPresent(Double.self, forKey: .playtime)
    progress = try container.decodeIfPresent(Double.self, forKey: .progress)
    thumbnail = try container.decodeIfPresent(Data.self, forKey: .thumbnail)
    custom = try container.decodeTable(forKey: .custom)
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(title, forKey: .title)
    try container.encodeIfPresent(playtime, forKey: .playtime)
    try container.encodeIfPresent(progress, forKey: .progress)
    try container.encodeIfPresent(thumbnail, forKey: .thumbnail)
    try container.encodeUnlessEmpty(custom, forKey: .custom)
  }
}
