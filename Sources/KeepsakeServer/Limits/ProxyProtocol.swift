#if Cloud
import Foundation
import NIOCore
import Synchronization

/// The PROXY protocol, versions 1 and 2: a header before the first byte of a connection, in which a proxy says whom it
/// speaks for.
enum ProxyProtocol {
  enum Outcome: Equatable, Sendable {
    /// The header isn't complete yet.
    case incomplete
    /// The connection's first bytes aren't a header.
    case invalid
    /// A header of `length` bytes. The address is nil for a connection of the proxy itself, such as a health check.
    case header(length: Int, PeerAddress?)
  }
  /// The longest header that is accepted. The addresses take 232 bytes at most, and what proxies add is short.
  static let maximumBytes = 1_024
  private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
  /// A line of version 1 has at most this many bytes.
  private static let maximumLine = 107

  /// Reads the header at the beginning of `bytes`.
  static func read(_ bytes: some Collection<UInt8>) -> Outcome {
    let bytes = Array(bytes.prefix(maximumBytes))
    if bytes.prefix(signature.count).elementsEqual(signature.prefix(bytes.count)) { return readBinary(bytes) }
    let word = Array("PROXY ".utf8)
    guard bytes.prefix(word.count).elementsEqual(word.prefix(bytes.count)) else { return .invalid }
    return readLine(bytes)
  }

  private static func readLine(_ bytes: [UInt8]) -> Outcome {
    guard let end = bytes.firstIndex(of: 0x0A), end > 0 else {
      return bytes.count < maximumLine ? .incomplete : .invalid
    }
    guard end < maximumLine, bytes[end - 1] == 0x0D else { return .invalid }
    let words = String(decoding: bytes[..<(end - 1)], as: UTF8.self).split(
      separator: " ", omittingEmptySubsequences: false)
    guard words.count >= 2 else { return .invalid }
    if words[1] == "UNKNOWN" { return .header(length: end + 1, nil) }
    guard words.count == 6, ["TCP4", "TCP6"].contains(words[1]), !words[2].contains("["),
      let address = PeerAddress(words[2])
    else { return .invalid }
    return .header(length: end + 1, address)
  }

  private static func readBinary(_ bytes: [UInt8]) -> Outcome {
    guard bytes.count >= 16 else { return .incomplete }
    let length = 16 + Int(bytes[14]) << 8 + Int(bytes[15])
    guard bytes[12] >> 4 == 2, bytes[12] & 0xF <= 1, length <= maximumBytes else { return .invalid }
    guard bytes.count >= length else { return .incomplete }
    guard bytes[12] & 0xF == 1 else { return .header(length: length, nil) }
    switch bytes[13] >> 4 {
    case 1 where length >= 16 + 12: return .header(length: length, PeerAddress(bytes: Array(bytes[16..<20])))
    case 2 where length >= 16 + 36: return .header(length: length, PeerAddress(bytes: Array(bytes[16..<32])))
    case 0, 3: return .header(length: length, nil)
    default: return .invalid
    }
  }

  // MARK: Connections

  private static let addresses = Mutex<[ObjectIdentifier: PeerAddress]>([:])

  /// Returns whom a connection's proxy speaks for; nil if nothing was said.
  static func address(of channel: any Channel) -> PeerAddress? {
    // A stream of HTTP/2 is a channel of its own, whose parent is the connection's.
    let parent = channel.parent.map { ObjectIdentifier($0) }
    return addresses.withLock { addresses in
      addresses[ObjectIdentifier(channel)] ?? parent.flatMap { addresses[$0] }
    }
  }

  static func set(_ address: PeerAddress, of channel: any Channel) {
    let id = ObjectIdentifier(channel)
    addresses.withLock { $0[id] = address }
    channel.closeFuture.whenComplete { _ in addresses.withLock { $0[id] = nil } }
  }
}
#endif
