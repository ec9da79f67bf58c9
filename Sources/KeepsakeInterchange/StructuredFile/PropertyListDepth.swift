import Foundation

/// Rejects property lists that Foundation's reader can't handle: it ends the process if XML is nested too deeply, and
/// takes hours for a small binary file whose lists all refer to each other.
///
/// Only looks at tags, and skips comments, CDATA and processing instructions, which contain none. All other errors are
/// left to the reader. It stops at the first end tag that doesn't match the last start tag, so a wrong end tag can't
/// make this count lower than the reader's depth.
struct PropertyListDepth {
  private var rest: Data
  private var depth = 0

  /// Throws `StructuredFileError` with `malformed`.
  static func check(_ bytes: Data) throws {
    guard !bytes.starts(with: Data("bplist".utf8)) else {
      throw StructuredFileError(
        .malformed, "this is a binary property list: convert it to XML first, with plutil or Python's plistlib")
    }
    // In UTF-16 and UTF-32, every tag has zeros or non-ASCII characters, so that none could be counted.
    let marks = [Data([0xFE, 0xFF]), Data([0xFF, 0xFE])]
    guard !bytes.contains(0), !marks.contains(where: { bytes.starts(with: $0) }) else {
      throw StructuredFileError(.malformed, "a property list must be UTF-8")
    }
    var walk = PropertyListDepth(rest: bytes)
    try walk.countTags()
  }

  private mutating func countTags() throws {
    while let mark = rest.firstIndex(of: UInt8(ascii: "<")) {
      rest = rest[mark...]
      if skip(from: "<!--", to: "-->") || skip(from: "<![CDATA[", to: "]]>") || skip(from: "<?", to: "?>") { continue }
      guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return }
      let tag = rest[..<end]
      rest = rest[(end + 1)...]
      if tag.starts(with: Data("<!".utf8)) {
        // A DTD's own definitions can expand to any number of tags.
        guard !tag.contains(UInt8(ascii: "[")) else {
          throw StructuredFileError(
            .malformed, "the DOCTYPE of a property list can't contain definitions: remove the part in [ ]")
        }
      } else if tag.starts(with: Data("</".utf8)) {
        depth -= 1
      } else if tag.last != UInt8(ascii: "/") {
        depth += 1
        guard depth <= StructuredFile.maximumDepth else {
          throw StructuredFileError(
            .malformed, "lists and dictionaries are nested more than \(StructuredFile.maximumDepth) deep")
        }
      }
    }
  }

  /// Skips a section if it begins here; to the end of the file if the section has no end.
  private mutating func skip(from begin: String, to end: String) -> Bool {
    guard rest.starts(with: Data(begin.utf8)) else { return false }
    let inside = rest.dropFirst(begin.utf8.count)
    rest = inside.firstRange(of: Data(end.utf8)).map { inside[$0.upperBound...] } ?? inside.suffix(0)
    return true
  }
}
