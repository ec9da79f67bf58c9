package import Foundation

/// The values in an archive, without the types that wrote it and without what it says of them.
package struct ArchiveContents: Sendable {
  package let root: ArchiveValue
  /// By number; nil for one that was only referred to weakly.
  package let objects: [ArchiveValue.Object?]
  /// The names of the types that values and objects name by index.
  package let typeNames: [String]

  /// - Throws: `ArchiveError` for what is no archive, damaged, too new or beyond the limits.
  package init(of data: Data, limits: ArchiveLimits = .standard) throws {
    self = try data.withUnsafeBytes { bytes in
      let file = try ArchiveFile(bytes, limits: limits)
      var parser = try ValueParser(file, limits: limits)
      let objects = try parser.objects()
      return ArchiveContents(root: try parser.root(), objects: objects, typeNames: file.schema.types.map(\.name))
    }
  }

  private init(root: ArchiveValue, objects: [ArchiveValue.Object?], typeNames: [String]) {
    (self.root, self.objects, self.typeNames) = (root, objects, typeNames)
  }

  /// The root as JSON; where there are objects, `{"root": ..., "objects": [...]}` with both.
  package func json() -> Data {
    var json = JSONWriter()
    let saved = objects.enumerated().compactMap { number, object in object.map { (number, $0) } }
    if saved.isEmpty {
      json.value(root)
    } else {
      json.beginObject()
      json.key("root")
      json.value(root)
      json.key("objects")
      json.beginArray()
      for (number, object) in saved { json.object(number, typeNames[object.type], object.fields) }
      json.end()
      json.end()
    }
    return Data(json.bytes)
  }
}
