import Foundation

extension JSONWriter {
  /// A value that has been begun.
  private struct Opened {
    /// Whether it is a dictionary whose keys aren't all strings: a list of pairs, each a list of two values.
    let isPairs: Bool
    /// Whether it is the second value of such a pair.
    let closesPair: Bool
  }

  /// Writes a value. Structs are objects with their keys, references are `{"$ref": n}`, enum cases are their names or
  /// `{"$case": name, ...}`, and dictionaries are objects if all keys are strings, otherwise lists of pairs. The
  /// members of an object are in the order of their names.
  package mutating func value(_ value: ArchiveValue) {
    var walk = ValueWalk(value, isByName: true)
    var opened: [Opened] = []
    while let event = walk.next() {
      guard case .value(let value, let label) = event else {
        end()
        if opened.popLast()?.closesPair == true { end() }
        continue
      }
      let isInPair = opened.last?.isPairs == true
      switch label {
      case .field(let key): self.key(key)
      case .key:
        if !isInPair, case .string(let key) = value {
          self.key(key)
          continue
        }
        beginArray()
      default: break
      }
      var closesPair = false
      if case .value = label { closesPair = isInPair }
      if case .enumeration(_, let name, let fields) = value, fields.isEmpty {
        walk.skipChildren()
        self.value(name)
        if closesPair { end() }
      } else if value.childCount != nil {
        opened.append(Opened(isPairs: begin(value), closesPair: closesPair))
      } else {
        scalar(value)
        if closesPair { end() }
      }
    }
  }

  /// Begins a value that contains others; returns true for a list of pairs.
  private mutating func begin(_ value: ArchiveValue) -> Bool {
    switch value {
    case .structure: beginObject()
    case .enumeration(_, let name, _):
      beginObject()
      key("$case")
      self.value(name)
    case .dictionary:
      let hasNames = value.hasNames
      if hasNames { beginObject() } else { beginArray() }
      return !hasNames
    default: beginArray()
    }
    return false
  }

  private mutating func scalar(_ value: ArchiveValue) {
    switch value {
    case .none: null()
    case .bool(let value): self.value(value)
    case .integer(let value): self.value(value)
    case .unsigned(let value): self.value(value)
    case .number(let value): self.value(value)
    case .string(let text), .url(let text), .decimal(let text): self.value(text)
    case .data(let data): self.value(data.base64EncodedString())
    case .date(let date):
      if let text = ValueLine.iso(date) { self.value(text) } else { self.value(date.timeIntervalSinceReferenceDate) }
    case .uuid(let uuid): self.value(uuid.uuidString)
    case .reference(let number):
      beginObject()
      key("$ref")
      self.value(number)
      end()
    case .vector, .array, .set, .dictionary, .structure, .enumeration: self.value(value)
    }
  }

  /// Writes an object of a class: its number, the name of its type, and its fields.
  package mutating func object(_ number: Int, _ type: String, _ fields: [ArchiveValue.Field]) {
    let own = [
      ArchiveValue.Field(key: "$id", value: .integer(Int64(number))),
      ArchiveValue.Field(key: "$type", value: .string(type)),
    ]
    beginObject()
    for field in (own + fields).byName {
      key(field.key)
      value(field.value)
    }
    end()
  }
}
