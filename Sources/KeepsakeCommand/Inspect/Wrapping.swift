#if Cloud
import Foundation
import Keepsake
import KeepsakeStore

/// Compression, or an encoding of text, that `keepsake` opens to read what is in it.
enum Wrapping: String, Codable {
  case gzip
  case zlib
  /// zlib whose bytes were written as if they were text.
  case rpgMakerMZ = "zlib, as games made with RPG Maker MZ write it"
  case zstd
  case base64
  case utf16 = "UTF-16"
  case utf32 = "UTF-32"

  /// The endings of names that say no more than the wrapping.
  private static let nameExtensions = [".gz", ".zst", ".b64", ".base64", ".zz"]
  private static let gzipMagic: [UInt8] = [0x1F, 0x8B, 0x08]
  /// How much of a file, or of what is in it, is looked at to recognize it.
  private static let bytesRead = 1_024

  /// Recognizes what a file is wrapped in. Looks at its beginning, and of zlib, which has no mark of its own, at all.
  ///
  /// - Parameter maximumBytes: The most bytes in it.
  /// - Returns: The wrapping with what is in it; nil for a file that is read as it is.
  /// - Throws: `CommandFailure` for a wrapping that is damaged, or has more in it than can be read.
  static func opened(
    _ data: Data, named name: String, maximumBytes: Int = maximumBytes
  ) throws -> (wrapping: Wrapping, bytes: Data)? {
    if data.starts(with: gzipMagic) { return (.gzip, try inflated(data, .gzip, maximumBytes)) }
    if let wrapping = encoding(of: data) { return (wrapping, try text(data, wrapping)) }
    if ArchiveFrame.isFrame(data), data.count > Zstd.frameMagic.count {
      let start = Zstd.beginning(of: data, count: bytesRead)
      // An archive in a frame is how Keepsake writes it.
      guard !start.isEmpty, !ArchiveFrame.isArchive(start) else { return nil }
      do {
        return (.zstd, try Zstd.expand(data, maximumBytes: maximumBytes))
      } catch let error as StoreError where error.code == .tooLarge {
        throw described(.tooLarge, .zstd, maximumBytes)
      } catch let error as StoreError {
        throw CommandFailure(.data, "it is compressed by zstd, and \(error.message)", next: copyAdvice)
      }
    }
    if let bytes = try base64(data) { return (.base64, bytes) }
    return try zlib(data, named: name, maximumBytes)
  }

  /// The name of what is in a file of this name.
  static func innerName(_ name: String) -> String {
    nameExtensions.first { name.lowercased().hasSuffix($0) }.map { String(name.dropLast($0.count)) } ?? name
  }

  private static let copyAdvice = "get a new copy of the file"

  /// The most bytes that are taken from a wrapping, whatever they are: a few can claim to be any number.
  static let maximumBytes = EncodedContent.maximumContentBytes

  // MARK: zlib

  private static func inflated(_ data: Data, _ wrapping: Wrapping, _ maximumBytes: Int) throws -> Data {
    do {
      return try Inflater.expand(data, maximumBytes: maximumBytes)
    } catch let failure as Inflater.Failure {
      throw described(failure, wrapping, maximumBytes)
    }
  }

  private static func described(
    _ failure: Inflater.Failure, _ wrapping: Wrapping, _ maximumBytes: Int
  ) -> CommandFailure {
    let what = "it is compressed by \(wrapping.rawValue), and"
    switch failure {
    case .damaged(let reason): return CommandFailure(.data, "\(what) damaged: \(reason)", next: copyAdvice)
    case .tooLarge:
      return CommandFailure(
        .data, "\(what) has more than \(Printable.size(Int64(maximumBytes))) in it, which is the most that is opened",
        next: "decompress it, and name the result")
    }
  }

  /// A stream of zlib begins with two bytes that text may begin with, too: it is one if it can be read to its end.
  private static func zlib(_ data: Data, named name: String, _ maximumBytes: Int) throws -> (Wrapping, Data)? {
    let isMZ = name.lowercased().hasSuffix(".rmmzsave")
    var candidates: [(Wrapping, Data)] = [(.zlib, data)]
    if isMZ, let latin = latin(data) { candidates.append((.rpgMakerMZ, latin)) }
    for (wrapping, bytes) in candidates where isZlib(bytes) {
      do {
        return (wrapping, try Inflater.expand(bytes, maximumBytes: maximumBytes))
      } catch Inflater.Failure.damaged {
        continue
      } catch let failure as Inflater.Failure {
        throw described(failure, wrapping, maximumBytes)
      }
    }
    return nil
  }

  private static func isZlib(_ data: Data) -> Bool {
    let start = Array(data.prefix(2))
    return start.count == 2 && start[0] & 0x0F == 8 && start[0] >> 4 <= 7
      && (UInt(start[0]) << 8 | UInt(start[1])).isMultiple(of: 31)
  }

  /// Returns the bytes that were written as the text of characters with these numbers; nil for any other text.
  private static func latin(_ data: Data) -> Data? {
    guard let text = String(validating: data, as: UTF8.self) else { return nil }
    var bytes = Data(capacity: data.count)
    for scalar in text.unicodeScalars {
      guard let byte = UInt8(exactly: scalar.value) else { return nil }
      bytes.append(byte)
    }
    return bytes
  }

  // MARK: Text

  /// Text with a mark at its beginning. XML in UTF-16 is read as it is.
  private static func encoding(of data: Data) -> Wrapping? {
    let start = Array(data.prefix(4))
    if start == [0xFF, 0xFE, 0, 0] || start == [0, 0, 0xFE, 0xFF] { return .utf32 }
    return KnownFile.isUTF16(Array(data.prefix(bytesRead))) ? .utf16 : nil
  }

  private static func text(_ data: Data, _ wrapping: Wrapping) throws -> Data {
    guard let text = String(data: data, encoding: wrapping == .utf32 ? .utf32 : .utf16) else {
      throw CommandFailure(.data, "it begins as text in \(wrapping.rawValue), and isn't valid", next: copyAdvice)
    }
    // The declaration of XML would still name the encoding that it was in.
    let declared = text.hasPrefix("<?xml") ? text.firstRange(of: "?>") : nil
    return Data((declared.map { text[$0.upperBound...] } ?? text[...]).utf8)
  }

  /// The base64 of a file that is read or recognized, or that begins as JSON does. Plain words are base64, too: two
  /// bytes would be there by chance.
  private static func base64(_ data: Data) throws -> Data? {
    let letters = data.prefix(bytesRead).filter(isLetter)
    guard letters.count >= 16,
      let start = Data(base64Encoded: Data(letters.prefix(letters.count / 4 * 4))),
      KnownFile.isMarked(start) || SavedFile.isPropertyList(start) || ArchiveFrame.isArchive(start)
        || [gzipMagic, Zstd.frameMagic, Array("{\"".utf8)].contains(where: { start.starts(with: $0) })
    else { return nil }
    var all = data.filter(isLetter)
    // Some leave out what fills up the last group.
    all.append(contentsOf: repeatElement(UInt8(ascii: "="), count: (4 - all.count % 4) % 4))
    guard let bytes = Data(base64Encoded: all) else {
      throw CommandFailure(.data, "it begins as base64, and is cut off or altered", next: copyAdvice)
    }
    return bytes
  }

  private static func isLetter(_ byte: UInt8) -> Bool { ![0x20, 0x09, 0x0A, 0x0D].contains(byte) }
}

extension [Wrapping] {
  /// What was opened, outermost first, in front of what it is, such as "gzip, in it: "; empty for an ordinary file.
  var opening: String { map { "\($0.rawValue), in it: " }.joined() }
}
#endif
