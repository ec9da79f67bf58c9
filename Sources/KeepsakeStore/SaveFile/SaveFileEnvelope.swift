import Crypto
package import Foundation

/// The envelope of every exported save: what it is, its format version, how it is sealed, and whether it is complete.
///
/// ```
/// 0         8          10       12        16        16+s              n-32       n
/// | magic   | version  | seal   | s       | seal's  | body            | checksum |
/// | 8 bytes | u16 = 1  | u16    | u32     | header  |                 | SHA-256  |
/// ```
///
/// Trusts nothing: every count is checked against the available bytes. docs/FORMAT.md specifies the format.
package struct SaveFileEnvelope: Sendable {
  /// "SAVE" between a byte above 127 and CR LF Control-Z, as in an archive's magic number.
  package static let magic = Data([0x8B, 0x53, 0x41, 0x56, 0x45, 0x0D, 0x0A, 0x1A])
  /// The version that this release writes.
  static let currentVersion: UInt16 = 1
  private static let headBytes = 16
  private static let checksumBytes = 32
  /// A game's identifier has at most 200 bytes; the rest has a fixed size.
  private static let maximumHeaderBytes = 4096

  /// How the body is sealed.
  package let kind: Seal.Kind
  /// Nil without a seal.
  let header: FileSeal.Header?
  /// Everything before the body; the seal covers it too.
  let front: Data
  let body: Data

  /// Returns whether the bytes begin like an exported save.
  package static func isSaveFile(_ bytes: Data) -> Bool { bytes.starts(with: magic) }

  /// Returns whether the bytes begin like an exported save without a seal.
  package static func isUnsealed(_ bytes: Data) -> Bool {
    isSaveFile(bytes) && bytes.count >= headBytes && bytes.littleEndian(at: 10) as UInt16 == 0
  }

  // MARK: Writing

  /// Returns the whole file around `body`.
  static func closing(_ body: Data, _ seal: FileSeal) throws -> Data {
    let header = seal.kind == .none ? nil : try seal.newHeader()
    let coded = try header.map(JSONEncoder.ordered.encode) ?? Data()
    var front = magic
    front.append(littleEndian: currentVersion)
    front.append(littleEndian: seal.kind.code)
    front.append(littleEndian: UInt32(coded.count))
    front.append(coded)
    let sealed = try header.map { try seal.close(body, behind: front, $0) } ?? body
    var hash = SHA256()
    hash.update(data: front)
    hash.update(data: sealed)
    var file = Data(capacity: front.count + sealed.count + checksumBytes)
    file.append(front)
    file.append(sealed)
    file.append(contentsOf: hash.finalize())
    return file
  }

  // MARK: Reading

  /// Parses a file. Costs a pass over the bytes and copies none.
  ///
  /// - Throws: `StoreError`: `misuse` for other bytes, `damaged`, or `newerFormat`.
  package init(_ file: Data) throws {
    guard Self.isSaveFile(file) else { throw StoreError(.misuse, "this is not an exported save") }
    guard file.count >= Self.headBytes + Self.checksumBytes else { throw Self.damaged("it is cut off") }
    let summed = file.dropLast(Self.checksumBytes)
    // Before anything else is trusted, including the version.
    guard SHA256.hash(data: summed) == file.suffix(Self.checksumBytes) else {
      throw Self.damaged("it was cut off or altered")
    }
    let version: UInt16 = summed.littleEndian(at: 8)
    guard version <= Self.currentVersion else {
      throw StoreError(
        .newerFormat,
        """
        the exported save has format \(version), but this program knows formats up to \(Self.currentVersion): update \
        the game
        """)
    }
    guard version == Self.currentVersion else { throw Self.damaged("it has the invalid format \(version)") }
    let code: UInt16 = summed.littleEndian(at: 10)
    guard let kind = Seal.Kind(code: code) else {
      throw StoreError(.newerFormat, "the exported save has a seal that this program doesn't know: update the game")
    }
    let count = Int(summed.littleEndian(at: 12) as UInt32)
    guard count <= Self.maximumHeaderBytes, count <= summed.count - Self.headBytes, (count == 0) == (kind == .none)
    else {
      throw Self.damaged("its seal's header has an invalid length")
    }
    front = summed.prefix(Self.headBytes + count)
    body = summed.dropFirst(Self.headBytes + count)
    self.kind = kind
    do {
      header = count == 0 ? nil : try JSONDecoder().decode(FileSeal.Header.self, from: front.dropFirst(Self.headBytes))
    } catch {
      throw StoreError(.damaged, "the exported save is damaged: its seal's header can't be decoded", cause: error)
    }
  }

  /// The identifier of the game that sealed it; nil without a seal.
  package var game: String? { header?.game }

  /// Returns the body without its seal.
  ///
  /// - Parameters:
  ///   - seal: Nil for tools without a secret, which accept signed files without checking them.
  ///   - adoptsUnsealed: Accepts a file without a seal although one is expected.
  func opened(_ seal: FileSeal?, adoptsUnsealed: Bool) throws -> Data {
    guard let header else {
      guard adoptsUnsealed || seal.map({ $0.kind == .none }) ?? true else {
        throw StoreError(
          .otherSeal,
          "the exported save isn't sealed, so anybody could have changed it: it is only accepted if the game allows it")
      }
      return body
    }
    guard let seal else {
      if kind == .signed { return try FileSeal.unchecked(body) }
      throw StoreError(
        .wrongSecret, "the exported save is encrypted: it can't be read without the secret of \(header.game)")
    }
    return try seal.open(body, as: kind, behind: front, header)
  }

  static func damaged(_ what: String) -> StoreError { StoreError(.damaged, "the exported save is damaged: \(what)") }
}

extension Seal.Kind {
  /// The code in a file.
  fileprivate var code: UInt16 {
    switch self {
    case .none: 0
    case .signed: 1
    case .sealed: 2
    }
  }

  fileprivate init?(code: UInt16) {
    switch code {
    case 0: self = .none
    case 1: self = .signed
    case 2: self = .sealed
    default: return nil
    }
  }
}

extension JSONEncoder {
  /// An encoder whose output is the same for the same value.
  static var ordered: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }
}

extension Data {
  mutating func append(littleEndian value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }

  /// Returns the number at `offset` bytes from the beginning. There must be enough bytes.
  func littleEndian<Value: FixedWidthInteger>(at offset: Int) -> Value {
    withUnsafeBytes { Value(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Value.self)) }
  }
}
