#if Cloud
import Foundation
import KeepsakePlatform
import NIOCore

/// The address that a request came from, without its port.
package struct PeerAddress: Hashable, Sendable, CustomStringConvertible {
  /// 4 bytes, 16 bytes, or none for a socket of this machine.
  let bytes: [UInt8]

  /// A connection by a socket of this machine.
  static let local = PeerAddress(bytes: [])

  /// An IPv4 address inside an IPv6 one, as a server that listens on `::` sees it, counts as the IPv4 address.
  init(bytes: [UInt8]) {
    let isMapped = bytes.count == 16 && bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10...11] == [0xFF, 0xFF]
    self.bytes = isMapped ? Array(bytes[12...]) : bytes
  }

  init(_ address: SocketAddress?) {
    switch address {
    case .v4(let address): self.init(bytes: withUnsafeBytes(of: address.address.sin_addr) { Array($0) })
    case .v6(let address): self.init(bytes: withUnsafeBytes(of: address.address.sin6_addr) { Array($0) })
    case .unixDomainSocket, nil: self = .local
    }
  }

  /// Reads an address as proxies write it: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`, in quotation
  /// marks or not. Nil for anything else.
  init?(_ text: some StringProtocol) {
    var text = text.trimmingCharacters(in: .whitespaces)
    if text.hasPrefix("\""), text.hasSuffix("\""), text.count >= 2 { text = String(text.dropFirst().dropLast()) }
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { return nil }
      text = String(text[text.index(after: text.startIndex)..<end])
    } else if text.count(where: { $0 == ":" }) == 1 {
      text = String(text.prefix { $0 != ":" })
    }
    guard text.utf8.count <= 45 else { return nil }
    var v4 = in_addr()
    var v6 = in6_addr()
    if inet_pton(AF_INET, text, &v4) == 1 {
      self.init(bytes: withUnsafeBytes(of: v4) { Array($0) })
    } else if inet_pton(AF_INET6, text, &v6) == 1 {
      self.init(bytes: withUnsafeBytes(of: v6) { Array($0) })
    } else {
      return nil
    }
  }

  /// Whether it is this machine: a proxy that nobody declared, or the operator.
  var isLoopback: Bool {
    bytes.isEmpty || (bytes.count == 4 && bytes[0] == 127)
      || (bytes.count == 16 && bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1)
  }

  /// The part that one customer of a provider has: an IPv4 address, or the first 64 bits of an IPv6 address.
  var network: PeerAddress {
    bytes.count == 16 ? PeerAddress(bytes: bytes.prefix(8) + Array(repeating: 0, count: 8)) : self
  }

  package var description: String {
    switch bytes.count {
    case 4: return bytes.map(String.init).joined(separator: ".")
    case 16:
      return stride(from: 0, to: 16, by: 2).map { String(Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]), radix: 16) }
        .joined(separator: ":")
    default: return "local"
    }
  }
}

/// A range of addresses, written as in `10.0.0.0/8` or `2001:db8::/32`; an address alone is a range of one.
package struct AddressRange: Hashable, Sendable {
  private let first: PeerAddress
  private let bits: Int

  /// Nil if `text` isn't a range.
  package init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count), !parts[0].isEmpty, let address = PeerAddress(parts[0]) else { return nil }
    let most = address.bytes.count * 8
    guard parts.count == 1 || parts[1].allSatisfy({ $0.isASCII && $0.isNumber }),
      let bits = parts.count == 2 ? Int(parts[1]) : most, (0...most).contains(bits)
    else { return nil }
    (first, self.bits) = (address, bits)
  }

  func contains(_ address: PeerAddress) -> Bool {
    guard address.bytes.count == first.bytes.count else { return false }
    let whole = bits / 8
    guard address.bytes.prefix(whole) == first.bytes.prefix(whole) else { return false }
    let rest = bits % 8
    return rest == 0 || (address.bytes[whole] ^ first.bytes[whole]) >> (8 - rest) == 0
  }
}
#endif
