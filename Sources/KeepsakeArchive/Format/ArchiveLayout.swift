/// The fixed parts of format version 1, described in docs/FORMAT.md.
///
///     0         8        10       12       16                                          n-16      n-8      n
///     | magic   | version| flags  | zero   | root | objects | references | footer     | footer  | XXH64  |
///     | 8 bytes | u16    | u16    | u32    |      |         |            |            | offset  |        |
package enum ArchiveLayout {
  /// The first byte, above 0x7F, keeps mail and text tools from taking the file for text; the line ends and the
  /// control-Z reveal a transfer in text mode.
  package static let magic: [UInt8] = [0x8B, 0x4B, 0x45, 0x45, 0x50, 0x0D, 0x0A, 0x1A]
  package static let version: UInt16 = 1
  package static let headerBytes = 16
  static let trailerBytes = 16

  /// Returns whether bytes begin like an archive. If there are fewer than 8, only these are compared.
  static func isMagic(_ bytes: UnsafeRawBufferPointer) -> Bool {
    if bytes.count >= 8 { return bytes.loadUnaligned(as: UInt64.self) == UInt64(littleEndian: 0x1A0A_0D50_4545_4B8B) }
    for (index, byte) in magic.enumerated() where index < bytes.count && bytes[index] != byte { return false }
    return true
  }
}
