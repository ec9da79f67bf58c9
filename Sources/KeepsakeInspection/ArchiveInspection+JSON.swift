public import Foundation
import KeepsakeArchive

/// Output for programs.
extension ArchiveInspection {
  /// Returns the header, the types, the root and all objects as one JSON document, ending in a line feed.
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
    json.key("header")
    json.beginObject()
    if !wrappings.isEmpty {
      json.key("wrappings")
      json.value(wrappings: wrappings)
    }
    if let foreign {
      json.key("format")
      json.value(foreign)
    } else {
      json.key("formatVersion")
      json.value(header.formatVersion)
    }
    json.key("bytes")
    json.value(header.byteCount)
    json.key("objectCount")
    json.value(header.objectCount)
    if foreign == nil {
      json.key("rootType")
      json.value(header.rootType)
    }
    json.end()
    json.key("types")
    json.beginArray()
    for type in types where foreign == nil || type.count > 0 { json.value(type) }
    json.end()
    if let savedClasses {
      json.key("classes")
      json.beginArray()
      for entry in savedClasses().entries {
        json.beginObject()
        json.key("path")
        json.value(entry.path)
        json.members(of: entry.name)
        json.end()
      }
      json.end()
    }
    json.key("root")
    json.value(root)
    json.key("objects")
    json.beginArray()
    for (number, object) in objects.enumerated() {
      guard let object else { continue }
      json.object(number, types[object.type].name, object.fields)
    }
    json.end()
    json.end()
    return Data(json.bytes + [0x0A])
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
    key("name")
    value(type.name)
    key("version")
    value(type.version)
    key("kind")
    value(type.kind.rawValue)
    key("count")
    value(type.count)
    key("bytes")
    value(type.byteCount)
    key("fields")
    value(type.fields)
    key("cases")
    beginArray()
    for enumCase in type.cases {
      beginObject()
      key("name")
      value(enumCase.name)
      key("fields")
      value(enumCase.fields)
      end()
    }
    end()
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
