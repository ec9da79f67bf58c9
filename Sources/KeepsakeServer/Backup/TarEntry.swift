#if Cloud
import Foundation

/// The header of one file in a tar archive, in the one form in which backups have it: a record of POSIX (pax) with the
/// path and the size, and a header of ustar.
///
/// Any program for tar can list and extract such an archive. The reader accepts exactly what the writer makes, so that
/// every altered byte is noticed.
struct TarEntry: Hashable, Sendable {
  static let blockBytes = 512
  /// The header of the record, the record, and the file's own header.
  static let headerBytes = 3 * blockBytes
  /// Two empty blocks end an archive.
  static let end = Data(count: 2 * blockBytes)
  /// The record has to fit into one block.
  static let maximumPathBytes = 255
  private static let nameBytes = 100
  /// The most that the size field of ustar can have; the record has the real one.
  private static let maximumShortSize: Int64 = 0o77_777_777_777

  /// ASCII, relative, with at most one slash.
  var path: String
  var size: Int64
  /// Seconds since 1970.
  var modified: Int64

  /// The empty bytes behind the file's, up to the next block.
  var padding: Int { Int((Int64(Self.blockBytes) - size % Int64(Self.blockBytes)) % Int64(Self.blockBytes)) }

  // MARK: Writing

  var header: Data {
    var record = Self.line("path", path) + Self.line("size", "\(size)")
    let count = record.count
    record.append(Data(count: Self.blockBytes - count))
    return block("pax/" + path, size: Int64(count), type: "x") + record
      + block(path, size: min(size, Self.maximumShortSize), type: "0")
  }

  /// A line of a record begins with its own length.
  private static func line(_ key: String, _ value: String) -> Data {
    let rest = " \(key)=\(value)\n"
    var length = rest.utf8.count
    while "\(length)".utf8.count + rest.utf8.count != length { length = "\(length)".utf8.count + rest.utf8.count }
    return Data("\(length)\(rest)".utf8)
  }

  private func block(_ name: String, size: Int64, type: Character) -> Data {
    func octal(_ number: Int64, _ digits: Int) -> String {
      let text = String(number, radix: 8)
      return String(repeating: "0", count: max(0, digits - text.count)) + text + "\0"
    }
    func field(_ text: String, _ bytes: Int) -> Data {
      let data = Data(text.utf8.prefix(bytes))
      return data + Data(count: bytes - data.count)
    }
    var block = field(name, Self.nameBytes) + field(octal(0o600, 7), 8) + field(octal(0, 7), 8) + field(octal(0, 7), 8)
    block += field(octal(size, 11), 12) + field(octal(modified, 11), 12)
    let rest = field("\(type)", 1) + field("", 100) + field("ustar\u{0}00", 8) + Data(count: 247)
    // The sum counts its own field as spaces.
    let sum = (block + rest).reduce(Int64(8 * 0x20)) { $0 + Int64($1) }
    return block + field(octal(sum, 6) + " ", 8) + rest
  }

  // MARK: Reading

  /// Parses a header; nil for any that `header` doesn't make.
  init?(header: Data) {
    guard header.count == Self.headerBytes else { return nil }
    let header = Data(header)
    let fields = header[Self.blockBytes..<2 * Self.blockBytes].prefix { $0 != 0 }
    guard let text = String(bytes: fields, encoding: .ascii) else { return nil }
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.count == 3, let path = Self.value("path", in: lines[0]),
      let size = Self.value("size", in: lines[1]).flatMap({ Int64($0) }), size >= 0
    else { return nil }
    let time = header[(2 * Self.blockBytes + 136)..<(2 * Self.blockBytes + 147)]
    guard let digits = String(bytes: time, encoding: .ascii), let modified = Int64(digits, radix: 8) else { return nil }
    self.init(path: path, size: size, modified: modified)
    guard path.utf8.count <= Self.maximumPathBytes, modified >= 0, self.header == header else { return nil }
  }

  init(path: String, size: Int64, modified: Int64) {
    (self.path, self.size, self.modified) = (path, size, modified)
  }

  private static func value(_ key: String, in line: Substring) -> String? {
    guard let space = line.firstIndex(of: " ") else { return nil }
    let rest = line[line.index(after: space)...]
    return rest.hasPrefix("\(key)=") ? String(rest.dropFirst(key.count + 1)) : nil
  }
}
#endif
