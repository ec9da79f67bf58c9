package import Foundation

/// The values in an archive, without the types that wrote it and without its description of them.
package struct ArchiveContents: Sendable {
  package let root: ArchiveValue
  /// By number; nil for an object that had only weak references.
  package let objects: [ArchiveValue.Object?]
  /// The names of the types, by the index that values and objects use.
  package let typeNames: [String]

  /// - Throws: `ArchiveError` for bytes that aren't an archive, are damaged, too new or beyond the limits.
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

  /// Returns the root as JSON; if there are objects, `{"objects": [...], "root": ...}` with both.
  package func json() -> Data {
    var json = JSONWriter()
    let saved = objects.enumerated().compactMap { number, object in object.map { (number, $0) } }
    if saved.isEmpty {
      json.value(root)
    } else {
      json.beginObject()
      json.key("objects")
      json.beginArray()
      for (number, object) in saved { json.object(number, typeNames[object.type], object.fields) }
      json.end()
      json.key("root")
      json.value(root)
      json.end()
    }
    return Data(json.bytes)
  }
}
