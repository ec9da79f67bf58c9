#if Cloud
import Foundation

@testable import KeepsakeCommand

/// The style of JSON that docs/COMMAND.md promises, checked by a reader of its own: the layout of each text, and the
/// names of all of them together.
struct JSONStyle {
  /// Names for which the table of docs/COMMAND.md, or what is printed elsewhere, has another one.
  private static let wrongNames: [String: String] = [
    "id": "version, slot, device or player", "hash": "sha256", "file": "path or output", "filename": "path",
    "input": "path", "store": "path", "folder": "path", "target": "output", "size": "bytes", "length": "bytes",
    "byteCount": "bytes", "plainBytes": "bytes", "seconds": "...Milliseconds", "ms": "...Milliseconds",
    "milliseconds": "...Milliseconds", "time": "...Milliseconds", "timestamp": "...Milliseconds",
    "duration": "...Milliseconds", "playtime": "playtimeMilliseconds", "problem": "message", "description": "message",
    "advice": "next", "hint": "next", "here": "downloaded", "place": "slotKey", "versionID": "version",
  ]
  /// Endings for which there is another one.
  private static let wrongEndings = ["Seconds", "Ms", "MS", "Size", "Length", "Hash", "Id", "ID", "Time", "File"]
  /// Members that hold what a save or its game names, or a map whose keys are the names of what is counted.
  private static let foreign: Set<String> = [
    "root", "objects", "addedObjects", "removedObjects", "old", "new", "custom", "context", "counts",
  ]
  /// Of scores, which are as games export them.
  private static let ofScores: Set<String> = ["id", "contextBytes"]
  /// Members that name a file or folder.
  private static let paths: Set<String> = ["path", "output", "manifest", "stateFolder", "sharedFolder"]

  /// The types of all members, by their names: the same thing has the same one everywhere.
  private(set) var types: [String: [String: String]] = [:]
  private(set) var objections: [String] = []

  /// Checks one JSON text that a command printed.
  mutating func check(_ text: String, isLine: Bool, of call: String) {
    var reader = Reader(Array(text.utf8))
    guard let node = reader.document() else {
      objections.append("\(call): not JSON, from \(reader.rest): \(text.prefix(500))")
      return
    }
    if case .object = node {} else { objections.append("\(call): not an object: \(text.prefix(200))") }
    let expected = node.text(isLine ? nil : "") + "\n"
    if text != expected { objections.append("\(call): another layout: \(text.prefix(500))") }
    objections += node.objections.map { "\(call): \($0)" }
    check(node, [], call)
  }

  private mutating func check(_ node: Node, _ above: [String], _ call: String) {
    switch node {
    case .scalar: break
    case .list(let elements):
      for element in elements { check(element, above, call) }
    case .object(let members):
      let values = Dictionary(members.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
      for (name, value) in members { check(name, value, beside: values, above, call) }
    }
  }

  private mutating func check(
    _ name: String, _ value: Node, beside values: [String: Node], _ above: [String], _ call: String
  ) {
    let place = (above + [name]).joined(separator: ".")
    func object(_ text: String) { objections.append("\(call): \(place): \(text)") }
    if name.wholeMatch(of: /[a-z][A-Za-z0-9]*/) == nil { object("isn't in camel case") }
    if name.wholeMatch(of: /is[A-Z].*/) != nil { object("begins with is") }
    let isOfScore = above.last == "scores" && Self.ofScores.contains(name)
    if !isOfScore {
      if let right = Self.wrongNames[name] { object("is called \(right)") }
      if Self.wrongEndings.contains(where: name.hasSuffix) { object("has an ending of its own") }
      if name == "bytes" || name.hasSuffix("Bytes"), !["number", "list of number"].contains(value.type) {
        object("is no size")
      }
    }
    if name.hasSuffix("Count"), value.type != "number" { object("is no number") }
    check(time: name, value, beside: values, object)
    if Self.paths.contains(name), value.string?.hasPrefix("/") == true { object("isn't as it was given: \(value)") }
    if name == "version", value.string?.wholeMatch(of: /[0-9a-f]{32}/) == nil { object("is no whole id") }
    if name == "error", case .object(let members) = value {
      let kinds = Set(members.map(\.name))
      if !kinds.isSuperset(of: ["code", "message"]) || !kinds.isSubset(of: ["code", "message", "next"]) {
        object("is no error")
      }
    }
    guard !Self.foreign.contains(name), above.last != "cells" || name != "value" else { return }
    for type in value.types {
      types[name, default: [:]][type] = "\(call): \(place)"
    }
    check(value, above + [name], call)
  }

  /// A moment is there twice, as a number and as text.
  private func check(
    time name: String, _ value: Node, beside values: [String: Node], _ object: (String) -> Void
  ) {
    if name.hasSuffix("Milliseconds") {
      guard let number = value.number else { return object("is no number") }
      // A duration is shorter than years.
      guard number > 1e11 else { return }
      let text = values[String(name.dropLast("Milliseconds".count))]?.string
      if text != TimeText.iso(milliseconds: Int64(number)) { object("isn't there as text") }
    } else if value.string?.wholeMatch(of: /[0-9]{4}-[0-9]{2}-[0-9]{2}T.*/) != nil,
      values[name + "Milliseconds"]?.number == nil
    {
      object("isn't there in milliseconds")
    }
  }

  /// What of the names can only be seen when all commands were checked.
  var conflicts: [String] {
    types.filter { $0.value.count > 1 }.map { name, types in
      "\(name): " + types.sorted { $0.key < $1.key }.map { "\($0.key) in \($0.value)" }.joined(separator: "; ")
    }.sorted()
  }
}

extension JSONStyle {
  /// A JSON value as it is written.
  indirect enum Node: CustomStringConvertible {
    case scalar(String)
    case list([Node])
    case object([(name: String, value: Node)])

    var string: String? {
      guard case .scalar(let text) = self, text.hasPrefix("\"") else { return nil }
      return try? JSONDecoder().decode(String.self, from: Data(text.utf8))
    }

    var number: Double? {
      guard case .scalar(let text) = self else { return nil }
      return Double(text)
    }

    var type: String { types.first ?? "nothing" }

    /// The types that it has; none for null, and for a list without elements.
    var types: [String] {
      switch self {
      case .scalar("null"): []
      case .scalar("true"), .scalar("false"): ["boolean"]
      case .scalar(let text): [text.hasPrefix("\"") ? "text" : "number"]
      case .list(let elements): Set(elements.flatMap(\.types)).sorted().map { "list of \($0)" }
      case .object: ["object"]
      }
    }

    /// The value as it has to be laid out.
    ///
    /// - Parameter indent: What is in front of its last line; nil for all on one line.
    func text(_ indent: String?) -> String {
      func joined(_ parts: [String], _ brackets: (String, String)) -> String {
        guard let indent else { return brackets.0 + parts.joined(separator: ",") + brackets.1 }
        guard !parts.isEmpty else { return brackets.0 + brackets.1 }
        let lines = parts.map { "\(indent)  \($0)" }.joined(separator: ",\n")
        return "\(brackets.0)\n\(lines)\n\(indent)\(brackets.1)"
      }
      let inner = indent.map { $0 + "  " }
      switch self {
      case .scalar(let text): return text
      case .list(let elements): return joined(elements.map { $0.text(inner) }, ("[", "]"))
      case .object(let members):
        let colon = indent == nil ? ":" : ": "
        return joined(members.map { "\"\($0.name)\"\(colon)\($0.value.text(inner))" }, ("{", "}"))
      }
    }

    /// What is wrong with the order of names, and with texts.
    var objections: [String] {
      switch self {
      case .scalar(let text):
        let isPlain = text.unicodeScalars.allSatisfy { !(0x7F...0x9F).contains($0.value) && $0 != "\u{202E}" }
        return text.contains("\\/") || !isPlain ? ["another way of writing \(text)"] : []
      case .list(let elements): return elements.flatMap(\.objections)
      case .object(let members):
        let names = members.map(\.name)
        let isSorted = zip(names, names.dropFirst()).allSatisfy { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        return (isSorted ? [] : ["unsorted names: \(names)"]) + members.flatMap(\.value.objections)
      }
    }

    var description: String { text(nil) }
  }

  /// Reads JSON and keeps how its values are written.
  struct Reader {
    private let bytes: [UInt8]
    private var index = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var rest: String { String(decoding: bytes[min(index, bytes.count)...].prefix(60), as: UTF8.self) }

    /// Nil if the text isn't one JSON value.
    mutating func document() -> Node? {
      guard let node = value() else { return nil }
      skipSpace()
      return index == bytes.count ? node : nil
    }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipSpace() {
      while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { index += 1 }
    }

    private mutating func take(_ byte: Character) -> Bool {
      skipSpace()
      guard next == byte.asciiValue else { return false }
      index += 1
      return true
    }

    private mutating func value() -> Node? {
      if take("{") { return members() }
      if take("[") { return elements() }
      return scalar().map { .scalar($0) }
    }

    private mutating func scalar() -> String? {
      skipSpace()
      let start = index
      if next == UInt8(ascii: "\"") {
        index += 1
        while let byte = next, byte != UInt8(ascii: "\"") { index += byte == UInt8(ascii: "\\") ? 2 : 1 }
        index += 1
        guard index <= bytes.count else { return nil }
      } else {
        while let byte = next, !",]} \n\t\r".utf8.contains(byte) { index += 1 }
      }
      let text = String(decoding: bytes[start..<index], as: UTF8.self)
      return ["true", "false", "null"].contains(text) || text.hasPrefix("\"") || Double(text) != nil ? text : nil
    }

    private mutating func elements() -> Node? {
      var elements: [Node] = []
      if take("]") { return .list([]) }
      repeat {
        guard let element = value() else { return nil }
        elements.append(element)
      } while take(",")
      return take("]") ? .list(elements) : nil
    }

    private mutating func members() -> Node? {
      var members: [(name: String, value: Node)] = []
      if take("}") { return .object([]) }
      repeat {
        guard let name = scalar(), name.hasPrefix("\""), take(":"), let value = value() else { return nil }
        members.append((String(name.dropFirst().dropLast()), value))
      } while take(",")
      return take("}") ? .object(members) : nil
    }
  }
}
#endif
