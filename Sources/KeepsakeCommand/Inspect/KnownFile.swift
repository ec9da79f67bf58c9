#if Cloud
import Foundation

/// A file of another program that `keepsake` recognizes and doesn't read: what it is, and what a person can do with it.
struct KnownFile: Hashable {
  /// What it is, after "is".
  var name: String
  var next: String

  private init(_ name: String, _ next: String) { (self.name, self.next) = (name, next) }

  /// The beginnings of files, each as the format's own description gives it.
  private static let beginnings: [(bytes: [UInt8], file: KnownFile)] = [
    (Array("PK\u{3}\u{4}".utf8), KnownFile("a zip archive", "unzip it first, and name a file in it")),
    (Array("PK\u{5}\u{6}".utf8), KnownFile("an empty zip archive", "there is nothing in it")),
    (Array("BZh".utf8), KnownFile("compressed by bzip2", "bunzip2 it first")),
    ([0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00], KnownFile("compressed by xz", "unxz it first")),
    ([0x04, 0x22, 0x4D, 0x18], KnownFile("compressed by LZ4", "unlz4 it first")),
    ([0x37, 0x7A, 0xBC, 0xAF, 0x27, 0x1C], KnownFile("a 7-Zip archive", "unpack it first, and name a file in it")),
    (
      [0x00, 0x01, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0x00, 0x00, 0x00],
      KnownFile(
        "written by .NET's BinaryFormatter, as by some games made with Unity",
        "only its game has the classes to read it; keepsake sync keeps it as it is")
    ),
    (Array("GVAS".utf8), KnownFile("a save of a game made with Unreal Engine", kept)),
    (Array("RSRC".utf8), KnownFile("a binary resource of a game made with Godot", kept)),
    (Array("GCPF".utf8), KnownFile("a compressed file of a game made with Godot", kept)),
    (Array("GDEC".utf8), KnownFile("an encrypted file of a game made with Godot", kept)),
    (Array("[gd_resource".utf8), KnownFile("a text resource of a game made with Godot", kept)),
    ([0x04, 0x08], KnownFile("written by Ruby's Marshal, as by games made with RPG Maker XP, VX and VX Ace", kept)),
    ([0x0A, 0x00], KnownFile("an NBT file, as Minecraft writes them", "an NBT editor shows what is in it")),
    // One that isn't wrapped in anything is read.
    (Array(InputKind.databaseMagic), KnownFile("a SQLite database", "write it to a file of its own, and name that")),
  ]

  private static let kept = "keepsake sync keeps it as it is"

  /// How many bytes are looked at.
  private static let bytesRead = 1_024

  /// Recognizes a file that isn't read; nil for any other.
  init?(_ data: Data, named name: String = "") {
    let start = Array(data.prefix(Self.bytesRead))
    guard
      let found = Self.named(name) ?? Self.binary(start) ?? Self.tar(start) ?? Self.xml(start) ?? Self.sections(start)
    else { return nil }
    self = found
  }

  /// A database of another program: one that isn't wrapped in anything is opened to see whether it is a store.
  static let database = KnownFile(
    "a SQLite database of another program, and not a Keepsake store", "sqlite3 shows what is in it; \(kept)")

  func failure(at path: String) -> CommandFailure { CommandFailure(.data, "\(path) is \(name)", next: next) }

  /// Whether bytes begin with the mark of a file that is recognized, and that isn't there by chance.
  static func isMarked(_ start: Data) -> Bool { binary(start, ofAtLeast: 3) != nil }

  private static func binary(_ start: some Collection<UInt8>, ofAtLeast count: Int = 0) -> KnownFile? {
    beginnings.first { $0.bytes.count >= count && start.starts(with: $0.bytes) }?.file
  }

  /// Saves that only their names tell: LZ-string in base64, and what isn't zlib though it should be.
  private static func named(_ name: String) -> KnownFile? {
    let makers = [".rpgsave": "MV", ".rmmzsave": "MZ"]
    return makers.first { name.lowercased().hasSuffix($0.key) }
      .map { KnownFile("a save of a game made with RPG Maker \($0.value)", kept) }
  }

  private static func tar(_ start: [UInt8]) -> KnownFile? {
    guard start.dropFirst(257).starts(with: "ustar".utf8) else { return nil }
    return KnownFile("a tar archive", "unpack it first, and name a file in it")
  }

  // MARK: Text

  /// An XML document of another kind than a property list, by its first element.
  private static func xml(_ start: [UInt8]) -> KnownFile? {
    var text = Substring(text(start)).drop { $0 == "\u{FEFF}" || $0.isWhitespace }
    // What may stand before the first element: the declaration, comments and a document type.
    while text.hasPrefix("<?") || text.hasPrefix("<!") {
      let end = text.hasPrefix("<?") ? "?>" : text.hasPrefix("<!--") ? "-->" : ">"
      guard let range = text.firstRange(of: end) else { return nil }
      text = text[range.upperBound...].drop(while: \.isWhitespace)
    }
    guard text.hasPrefix("<") else { return nil }
    let element = text.dropFirst().prefix { $0.isLetter || $0.isNumber || "_-.:".contains($0) }
    switch element {
    case "", "plist": return nil
    case "unity_prefs": return KnownFile("the PlayerPrefs of a game made with Unity", kept)
    case "map":
      return KnownFile("preferences of a program on Android, such as the PlayerPrefs of a game made with Unity", kept)
    case "dict", "array", "string", "integer", "real", "true", "false", "date", "data", "key": return nil
    default:
      return KnownFile(
        "XML of another kind than a property list: it begins with <\(element)>", "keepsake reads property lists")
    }
  }

  /// Returns the beginning of a text in UTF-8, or in UTF-16 with a mark.
  private static func text(_ start: [UInt8]) -> String {
    guard start.starts(with: [0xFF, 0xFE]) || start.starts(with: [0xFE, 0xFF]) else {
      return String(decoding: start, as: UTF8.self)
    }
    let isLittle = start[0] == 0xFF
    let units = stride(from: 2, to: start.count - 1, by: 2).map { index in
      let (low, high) = isLittle ? (start[index], start[index + 1]) : (start[index + 1], start[index])
      return UInt16(high) << 8 | UInt16(low)
    }
    return String(decoding: units, as: UTF16.self)
  }

  /// Lines of text whose first one is a section in brackets, followed by a key with its value.
  private static func sections(_ start: [UInt8]) -> KnownFile? {
    let lines = text(start).split(whereSeparator: \.isNewline).lazy
      .map { $0.drop { $0 == "\u{FEFF}" || $0.isWhitespace } }
      .filter { !$0.isEmpty && !$0.hasPrefix(";") && !$0.hasPrefix("#") }
    guard let section = lines.first, let entry = lines.dropFirst().first,
      section.wholeMatch(of: /\[[^\[\]{}"]+\]\s*/) != nil, entry.wholeMatch(of: /[^\[\]{}"=]+=.*/) != nil
    else { return nil }
    return KnownFile("a ConfigFile of a game made with Godot, or another file of settings in sections (INI)", kept)
  }

  /// Whether bytes begin as text in UTF-16 that isn't XML, which is read as it is.
  static func isUTF16(_ start: [UInt8]) -> Bool {
    let isLittle = start.starts(with: [0xFF, 0xFE])
    guard isLittle || start.starts(with: [0xFE, 0xFF]) else { return false }
    let first = stride(from: 2, to: start.count - 1, by: 2).lazy
      .map {
        isLittle ? UInt16(start[$0]) | UInt16(start[$0 + 1]) << 8 : UInt16(start[$0]) << 8 | UInt16(start[$0 + 1])
      }
      .first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
    return first != 0x3C
  }
}
#endif
