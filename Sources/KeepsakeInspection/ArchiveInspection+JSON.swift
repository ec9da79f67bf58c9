public import Foundation
import KeepsakeArchive

/// Output for programs.
extension ArchiveInspection {
  /// Returns the header, the types, the root and all objects as one JSON document, ending in a line feed. The members
  /// of each object are in the order of their names.
  ///
  /// Structs are objects with their keys, objects have `$id` and `$type`, references are `{"$ref": n}`, enum cases are
  /// their names or `{"$case": name, ...}`. Numbers that JSON doesn't have are strings. Dictionaries with keys other
  /// than strings are lists of pairs. Of a keyed archive, `classes` has each object whose class isn't that of its value
  /// in JSON, such as an NSMutableArray, by its path.
  ///
  /// - Returns: The document, in UTF-8.
  public func json() -> Data {
    var json = JSONWriter()
    json.beginObject()
    if let savedClasses {
      json.key("classes")
      json.beginArray()
      for entry in savedClasses().entries {
        json.beginObject()
        json.members(of: entry.name, at: entry.path)
        json.end()
      }
      json.end()
    }
    json.key("header")
    writeHeader(to: &json)
    json.key("objects")
    json.beginArray()
    for (number, object) in objects.enumerated() {
      guard let object else { continue }
      json.object(number, types[object.type].name, object.fields)
    }
    json.end()
    if let source {
      json.key("path")
      json.value(source.path)
    }
    json.key("root")
    json.value(root)
    if let slot = source?.slot {
      json.key("slot")
      json.value(slot)
    }
    json.key("types")
    json.beginArray()
    for type in types where foreign == nil || type.count > 0 { json.value(type) }
    json.end()
    if let version = source?.version {
      json.key("version")
      json.value(version)
    }
    json.end()
    return Data(json.bytes + [0x0A])
  }

  private func writeHeader(to json: inout JSONWriter) {
    json.beginObject()
    json.key("bytes")
    json.value(header.byteCount)
    if let foreign {
      json.key("format")
      json.value(foreign)
    } else {
      json.key("formatVersion")
      json.value(header.formatVersion)
    }
    json.key("objectCount")
    json.value(header.objectCount)
    if foreign == nil {
      json.key("rootType")
      json.value(header.rootType)
    }
    if !wrappings.isEmpty {
      json.key("wrappings")
      json.value(wrappings: wrappings)
    }
    json.end()
  }
}

extension JSONWriter {
  mutating func value(wrappings: [String]) {
    beginArray()
    for wrapping in wrappings { value(wrapping) }
    end()
  }

  mutating func value(_ type: ArchiveInspection.TypeDescription) {
    beginObject()
    key("bytes")
    value(type.byteCount)
    key("cases")
    beginArray()
    for enumCase in type.cases {
      beginObject()
      key("fields")
      value(enumCase.fields)
      key("name")
      value(enumCase.name)
      end()
    }
    end()
    key("count")
    value(type.count)
    key("fields")
    value(type.fields)
    key("kind")
    value(type.kind.rawValue)
    key("name")
    value(type.name)
    // Not "version", which is a version of a save.
    key("typeVersion")
    value(type.version)
    end()
  }

  private mutating func value(_ fields: [ArchiveInspection.Field]) {
    beginArray()
    for field in fields {
      beginObject()
      key("key")
      value(field.key)
      key("type")
      value(field.type)
      end()
    }
    end()
  }
}
