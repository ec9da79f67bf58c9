import Foundation
import KeepsakeReplication

/// A line of the table of what is placed where.
struct PlacedLine: Hashable, Codable {
  var path: String
  var entry: PlacedEntry

  /// Returns the line's bytes, without the line feed.
  ///
  /// A folder has thousands of lines, nearly all of which need no general encoder.
  func json(_ encoder: JSONEncoder) throws -> Data { try plain ?? encoder.encode(self) }

  init(path: String, entry: PlacedEntry) { (self.path, self.entry) = (path, entry) }

  init(_ json: Data, _ decoder: JSONDecoder) throws {
    self = try Self(plain: json) ?? decoder.decode(Self.self, from: json)
  }

  // MARK: Without an encoder

  /// Nil for a line that needs an encoder.
  var plain: Data? {
    var json = PlainJSONWriter(capacity: 512)
    json.append("{\"entry\":{\"before\":")
    json.append(entry.before)
    if let hash = entry.hash { json.append(",\"hash\":\"\(hash)\"") }
    json.append(",\"shown\":")
    json.append(entry.shown)
    if let signature = entry.signature {
      json.append(",\"signature\":{\"changedNanoseconds\":\(signature.changedNanoseconds)")
      json.append(",\"device\":\(signature.device),\"inode\":\(signature.inode)")
      json.append(",\"modifiedNanoseconds\":\(signature.modifiedNanoseconds),\"size\":\(signature.size)}")
    }
    json.append(",\"version\":\"\(entry.version)\"},\"path\":")
    guard json.string(path) else { return nil }
    json.append("}")
    return Data(json.bytes)
  }

  /// Nil for a line that needs a decoder.
  init?(plain json: Data) {
    let line = json.withUnsafeBytes { bytes in
      var json = PlainJSONReader(bytes)
      return Self(&json)
    }
    guard let line else { return nil }
    self = line
  }

  private init?(_ json: inout PlainJSONReader) {
    guard json.take("{\"entry\":{\"before\":"), let before = json.list({ $0.identifier(VersionID.self) }) else {
      return nil
    }
    var hash: ContentHash?
    if json.take(",\"hash\":") {
      hash = json.hash()
      guard hash != nil else { return nil }
    }
    guard json.take(",\"shown\":"), let shown = json.list({ $0.identifier(VersionID.self) }) else { return nil }
    var signature: FileSignature?
    if json.take(",\"signature\":{") {
      signature = FileSignature(&json)
      guard signature != nil else { return nil }
    }
    guard json.take(",\"version\":"), let version = json.identifier(VersionID.self), json.take("},\"path\":"),
      let path = json.string(), json.take("}"), json.isAtEnd
    else { return nil }
    entry = PlacedEntry(version: version, shown: shown, hash: hash, signature: signature, before: before)
    self.path = path
  }
}

extension FileSignature {
  /// Reads what follows the opening brace.
  fileprivate init?(_ json: inout PlainJSONReader) {
    guard json.take("\"changedNanoseconds\":"), let changed = json.integer(),
      json.take(",\"device\":"), let device = json.integer().flatMap({ UInt64(exactly: $0) }),
      json.take(",\"inode\":"), let inode = json.integer().flatMap({ UInt64(exactly: $0) }),
      json.take(",\"modifiedNanoseconds\":"), let modified = json.integer(),
      json.take(",\"size\":"), let size = json.integer(), json.take("}")
    else { return nil }
    self.init(
      size: size, modifiedNanoseconds: modified, changedNanoseconds: changed, inode: inode, device: device)
  }
}
