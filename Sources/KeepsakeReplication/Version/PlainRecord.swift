package import Foundation

/// The JSON of a version's record, written and read without a general encoder, for records that have nothing unusual: a
/// store writes and reads each record several times on its way to a cloud, and an encoder takes ten times as long.
///
/// A record that isn't plain (with a picture, a playtime or progress, several custom fields, or text that JSON escapes)
/// is left to an encoder, and JSON in any other form to a decoder.
package enum PlainRecord {
  /// Most records have fewer bytes.
  private static let usualBytes = 512

  /// Returns the JSON of a record; nil if the record isn't plain.
  package static func json(of record: VersionRecord) -> Data? {
    var json = PlainJSONWriter(capacity: usualBytes)
    return json.write(record) ? Data(json.bytes) : nil
  }

  /// Returns the JSON of a change of a version; nil if the record isn't plain.
  package static func json(of change: CloudChange) -> Data? {
    guard case .version(let record) = change.item else { return nil }
    var json = PlainJSONWriter(capacity: usualBytes)
    json.append("{\"seq\":\(change.seq),\"version\":")
    guard json.write(record) else { return nil }
    json.append("}")
    return Data(json.bytes)
  }

  /// Returns the record; nil for JSON that isn't exactly of this form.
  package static func record(in json: Data) -> VersionRecord? {
    json.withUnsafeBytes { bytes in
      var json = PlainJSONReader(bytes)
      guard let record = json.record(), json.isAtEnd else { return nil }
      return record
    }
  }

  /// Returns the change of a version; nil for JSON that isn't exactly of this form.
  package static func change(in json: Data) -> CloudChange? {
    json.withUnsafeBytes { bytes in
      var json = PlainJSONReader(bytes)
      guard json.take("{\"seq\":"), let seq = json.integer().flatMap({ UInt64(exactly: $0) }),
        json.take(",\"version\":"), let record = json.record(), json.take("}"), json.isAtEnd
      else { return nil }
      return CloudChange(seq: seq, item: .version(record))
    }
  }
}

extension PlainJSONWriter {
  /// Returns false if the record isn't plain.
  fileprivate mutating func write(_ record: VersionRecord) -> Bool {
    append("{")
    if !record.contents.isEmpty {
      append("\"contents\":")
      append(record.contents)
      append(",")
    }
    if !record.covers.isEmpty {
      append("\"covers\":")
      append(record.covers)
      append(",")
    }
    append("\"id\":\"\(record.id)\",")
    if record.length != 0 { append("\"length\":\(record.length),") }
    guard write(record.metadata) else { return false }
    if record.provisional { append("\"provisional\":true,") }
    append("\"savedAtMilliseconds\":\(record.savedAtMilliseconds),\"slot\":")
    guard string(record.slot) else { return false }
    append(record.tombstone ? ",\"tombstone\":true,\"writer\":\"" : ",\"writer\":\"")
    append("\(record.writer)\"}")
    return true
  }

  private mutating func write(_ metadata: SaveMetadata) -> Bool {
    guard metadata.thumbnail == nil, metadata.playtime == nil, metadata.progress == nil, metadata.custom.count <= 1
    else { return false }
    guard metadata.title != nil || !metadata.custom.isEmpty else { return true }
    append("\"metadata\":{")
    for (key, value) in metadata.custom {
      append("\"custom\":{")
      guard string(key) else { return false }
      append(":")
      guard string(value) else { return false }
      append(metadata.title == nil ? "}" : "},")
    }
    if let title = metadata.title {
      append("\"title\":")
      guard string(title) else { return false }
    }
    append("},")
    return true
  }
}

extension PlainJSONReader {
  fileprivate mutating func record() -> VersionRecord? {
    guard take("{") else { return nil }
    var (contents, covers): ([ContentHash], [VersionID]) = ([], [])
    if take("\"contents\":") {
      guard let list = list({ $0.hash() }), take(",") else { return nil }
      contents = list
    }
    if take("\"covers\":") {
      guard let list = list({ $0.identifier(VersionID.self) }), take(",") else { return nil }
      covers = list
    }
    guard take("\"id\":"), let id = identifier(VersionID.self) else { return nil }
    var length = 0
    if take(",\"length\":") {
      guard let count = integer().flatMap({ Int(exactly: $0) }) else { return nil }
      length = count
    }
    guard let metadata = metadata() else { return nil }
    let provisional = take(",\"provisional\":true")
    guard take(",\"savedAtMilliseconds\":"), let savedAt = integer(), take(",\"slot\":"), let slot = string() else {
      return nil
    }
    let tombstone = take(",\"tombstone\":true")
    guard take(",\"writer\":"), let writer = writer(), take("}") else { return nil }
    return VersionRecord(
      id: id, slot: slot, covers: covers, contents: contents, length: length, metadata: metadata,
      savedAtMilliseconds: savedAt, writer: writer, provisional: provisional, tombstone: tombstone)
  }

  /// Returns nil for metadata in another form; empty metadata if there is none.
  private mutating func metadata() -> SaveMetadata? {
    var metadata = SaveMetadata()
    guard take(",\"metadata\":{") else { return metadata }
    if take("\"custom\":{") {
      guard let key = string(), take(":"), let value = string(), take("}") else { return nil }
      metadata.custom = [key: value]
      if take("}") { return metadata }
      guard take(",") else { return nil }
    }
    guard take("\"title\":"), let title = string(), take("}") else { return nil }
    metadata.title = title
    return metadata
  }
}
