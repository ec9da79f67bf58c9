public import Foundation
import KeepsakeArchive

/// Output for programs.
extension ArchiveDifference {
  /// Returns a JSON document for programs, ending in a line feed. Values are written as by `ArchiveInspection.json()`;
  /// a reference refers to an object of the archive that contains it. The members of each object are in the order of
  /// their names.
  ///
  /// - Returns: The document, in UTF-8.
  public func json() -> Data {
    var json = JSONWriter()
    json.beginObject()
    writeObjects(addedObjects, as: "addedObjects", to: &json)
    json.key("changes")
    json.beginArray()
    for change in changes { json.value(change) }
    json.end()
    if let classes {
      json.key("classes")
      json.beginArray()
      for change in classes { json.value(change) }
      json.end()
    }
    json.key("equal")
    json.value(isEmpty)
    json.key("files")
    json.beginArray()
    for side in sides { json.value(side) }
    json.end()
    json.key("omitted")
    json.value(omitted)
    if classes != nil {
      json.key("omittedClasses")
      json.value(omittedClasses)
    }
    writeObjects(removedObjects, as: "removedObjects", to: &json)
    json.key("types")
    json.beginArray()
    for change in types { json.value(change) }
    json.end()
    json.end()
    return Data(json.bytes + [0x0A])
  }

  private func writeObjects(_ objects: [LoneObject], as name: String, to json: inout JSONWriter) {
    json.key(name)
    json.beginArray()
    for object in objects { json.object(object.number, object.type, object.fields) }
    json.end()
  }
}

extension JSONWriter {
  /// Writes what is known of one of the files.
  fileprivate mutating func value(_ side: ArchiveDifference.Side) {
    let source = side.source
    beginObject()
    for (name, text) in [("path", source?.path), ("slot", source?.slot), ("version", source?.version)] {
      guard let text else { continue }
      key(name)
      value(text)
    }
    if !side.wrappings.isEmpty {
      key("wrappings")
      value(wrappings: side.wrappings)
    }
    end()
  }

  fileprivate mutating func value(_ omitted: [ArchiveDifference.Omission]) {
    beginArray()
    for omission in omitted {
      beginObject()
      key("count")
      value(omission.count)
      key("pattern")
      value(omission.pattern)
      end()
    }
    end()
  }

  fileprivate mutating func value(_ change: ArchiveDifference.TypeChange) {
    beginObject()
    for (name, text) in [
      ("change", change.kind.rawValue), ("member", change.member), ("new", change.new), ("old", change.old),
      ("type", change.type),
    ] {
      guard let text else { continue }
      key(name)
      value(text)
    }
    end()
  }

  fileprivate mutating func value(_ change: ArchiveDifference.Change) {
    beginObject()
    key("change")
    value(change.kind.rawValue)
    for (name, saved) in [("new", change.new), ("old", change.old)] {
      guard let saved else { continue }
      key(name)
      value(saved)
    }
    key("path")
    value(change.path)
    end()
  }
}
