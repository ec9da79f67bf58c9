import Foundation

/// The binary format, `bplist00`. Everything is big-endian.
///
///     0          8                       t            n-32      n
///     | bplist00 | objects               | offsets    | trailer |
///
///     trailer   6 bytes unused | u8 bytes of an offset | u8 bytes of a reference
///               | u64 count of objects | u64 number of the root | u64 t
///     offsets   where each object begins, by number
///     object    u8: its kind in the upper four bits, a value that depends on the kind in the lower four
///
///     00 null   08 false   09 true
///     1n        integer of 2^n bytes: without a sign up to 4, with one from 8
///     22 23     number of 4 or 8 bytes: IEEE 754
///     33        date: 8 bytes IEEE 754, seconds since 2001-01-01 00:00:00 UTC
///     4n        n bytes of data
///     5n 6n     n characters of ASCII, n units of UTF-16
///     8n        UID of n + 1 bytes
///     An Cn     array, set: n references
///     Dn        dictionary: n references to keys, then n to values
///
/// If n is 15, the count follows as an integer object.
enum BinaryFormat {
  static let magic = Data("bplist00".utf8)
  /// The first bytes of all versions of the format.
  static let family = Data("bplist".utf8)
  static let trailerBytes = 32
  static let longCount: UInt8 = 15

  enum Kind: UInt8 {
    case simple = 0
    case integer = 1
    case real = 2
    case date = 3
    case data = 4
    case ascii = 5
    case utf16 = 6
    case uid = 8
    case array = 10
    case set = 12
    case dictionary = 13
  }
}
