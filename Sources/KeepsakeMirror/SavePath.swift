import Foundation
import KeepsakeReplication

/// The path of a save inside a mirrored folder: a relative path of plain components, joined by `/`.
///
/// A value of this type is safe to follow from the folder's root, even if another device chose it: it is not absolute,
/// has no empty, `.` or `..` component, no control character and no name reserved by Keepsake, and its length is
/// limited. Two paths are equal if their bytes are: a string would treat two spellings of `é` as the same, but a file
/// system may keep them as two files.
package struct SavePath: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The longest path that stores and clouds accept as the name of a slot, with the slot's prefix.
  static let maximumBytes = ExchangeRules.maximumSlotBytes - slotPrefix.utf8.count
  /// Most file systems accept 255; the rest is left for the names of temporaries.
  static let maximumComponentBytes = 240
  /// Deep enough for any game, shallow enough that a walk can't run out of descriptors.
  static let maximumComponents = 32
  /// What the name of a mirrored file's slot begins with, before its path.
  package static let slotPrefix = "file:"
  /// Components with this name, or that begin with it and a hyphen, in any case, are reserved by Keepsake: the state
  /// folder and temporaries.
  package static let reservedName = ".keepsake"

  private static let slash = UInt8(ascii: "/")

  private let bytes: [UInt8]

  /// Creates a path that somebody typed or a cloud named, if it is safe.
  ///
  /// - Throws: `SavePathRefusal` that states what is wrong with it.
  init(_ text: some StringProtocol) throws(SavePathRefusal) {
    let bytes = Array(text.utf8)
    guard !bytes.isEmpty else { throw .empty }
    guard bytes.count <= Self.maximumBytes else { throw .tooLong }
    guard bytes.first != Self.slash else { throw .absolute }
    let components = bytes.split(separator: Self.slash, omittingEmptySubsequences: false)
    guard components.count <= Self.maximumComponents else { throw .tooDeep }
    for component in components { try Self.check(component) }
    guard !Self.hasControlCharacter(bytes) else { throw .controlCharacter }
    self.bytes = bytes
  }

  /// Creates the path of what a scan found in a folder, if it is safe: with less work than from a whole path, because
  /// the folder's own path is checked already.
  ///
  /// - Parameters:
  ///   - name: In UTF-8, without a slash.
  ///   - folder: Nil for the root.
  ///   - prefix: What the name of the path's slot has before it (`MirrorSelection.prefix`): with it, it has to be a
  ///     safe path, too.
  init(_ name: [UInt8], in folder: SavePath?, behind prefix: SavePath? = nil) throws(SavePathRefusal) {
    let bytes = folder.map { $0.bytes + [Self.slash] + name } ?? name
    guard bytes.count + (prefix.map { $0.bytes.count + 1 } ?? 0) <= Self.maximumBytes else { throw .tooLong }
    guard (prefix?.depth ?? 0) + bytes.count(where: { $0 == Self.slash }) < Self.maximumComponents else {
      throw .tooDeep
    }
    try Self.check(name[...])
    guard !Self.hasControlCharacter(name) else { throw .controlCharacter }
    self.bytes = bytes
  }

  /// Creates the path of a file's slot; nil if the slot isn't a file's.
  init?(slot: String) throws(SavePathRefusal) {
    let name = Array(slot.utf8)
    let prefix = Array(Self.slotPrefix.utf8)
    guard name.starts(with: prefix) else { return nil }
    try self.init(String(decoding: name.dropFirst(prefix.count), as: UTF8.self))
  }

  package var text: String { String(decoding: bytes, as: UTF8.self) }
  var slot: String { Self.slotPrefix + text }
  package var description: String { text }

  private var depth: Int { bytes.count { $0 == Self.slash } + 1 }

  var components: [String] {
    bytes.split(separator: Self.slash).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Identifies the path in a temporary's name, so that a temporary left by a crash can be matched with its path.
  var tag: String { String(ContentHash(of: Data(bytes)).description.prefix(16)) }

  // An array compares and hashes its bytes one by one, which took a twentieth of a first sync.
  package static func == (left: Self, right: Self) -> Bool {
    left.bytes.count == right.bytes.count && memcmp(left.bytes, right.bytes, left.bytes.count) == 0
  }

  package func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }

  package static func < (left: Self, right: Self) -> Bool { left.bytes.lexicographicallyPrecedes(right.bytes) }

  private static func check(_ component: ArraySlice<UInt8>) throws(SavePathRefusal) {
    guard !component.isEmpty else { throw .emptyComponent }
    guard component.count <= maximumComponentBytes else { throw .tooLong }
    guard component != [UInt8(ascii: ".")], component != [UInt8(ascii: "."), UInt8(ascii: ".")] else { throw .escapes }
    guard !isReserved(component) else { throw .reserved }
  }

  static func isReserved(_ component: some Collection<UInt8>) -> Bool {
    // Most names differ in the first byte.
    guard component.first == reservedName.utf8.first else { return false }
    let name = Array(reservedName.utf8)
    let lowercase = component.prefix(name.count).map { byte in
      (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
    guard lowercase == name else { return false }
    let next = component.dropFirst(name.count).first
    return next == nil || next == UInt8(ascii: "-")
  }

  /// Whether UTF-8 has one of the characters U+0000 to U+001F or U+007F to U+009F, which begin with C2 from U+0080 on.
  private static func hasControlCharacter(_ utf8: [UInt8]) -> Bool {
    var last: UInt8 = 0
    for byte in utf8 {
      if byte < 0x20 || byte == 0x7F || last == 0xC2 && byte < 0xA0 { return true }
      last = byte
    }
    return false
  }
}

/// Why a path can't be mirrored.
enum SavePathRefusal: String, Error, Hashable, Sendable, Codable {
  case empty, absolute, emptyComponent, escapes, reserved, controlCharacter, tooLong, tooDeep, notUnicode
  /// The path is a save's, but no file of this system can have it.
  case impossibleHere

  var message: String {
    switch self {
    case .empty: "the name is empty"
    case .absolute: "the path is absolute; only paths inside the folder are synced"
    case .emptyComponent: "the path has an empty component"
    case .escapes: "the path has a component \".\" or \"..\"; only paths inside the folder are synced"
    case .reserved:
      "\(SavePath.reservedName) and names that begin with \(SavePath.reservedName)- are reserved for Keepsake"
    case .controlCharacter: "the name has a control character; rename the file to sync it"
    case .tooLong:
      "the path is too long (at most \(SavePath.maximumBytes) bytes, \(SavePath.maximumComponentBytes) a component)"
    case .tooDeep: "the path has more than \(SavePath.maximumComponents) components"
    case .notUnicode: "the name is not valid UTF-8; rename the file to sync it"
    case .impossibleHere:
      """
      this system can't have a file of this name; its history is kept here: rename the file on another device to have it
      """
    }
  }
}
