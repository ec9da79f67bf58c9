#if Cloud
import HTTPTypes

/// The proxies whose word about a client's address counts.
struct TrustedProxies: Sendable {
  /// The most addresses of `X-Forwarded-For` that are looked at.
  private static let maximumHops = 32

  private let ranges: [AddressRange]

  init(_ ranges: [AddressRange]) { self.ranges = ranges }

  var isEmpty: Bool { ranges.isEmpty }

  func trusts(_ address: PeerAddress) -> Bool { ranges.contains { $0.contains(address) } }

  /// Returns the client's address: the peer, or, if that is a trusted proxy, whom it speaks for.
  ///
  /// `X-Forwarded-For` is read from the right, where each proxy adds whom it had the request from, and only through
  /// trusted ones: whatever a client wrote itself stands further left, and is never reached. An address that can't be
  /// read ends the search, at the proxy that wrote it.
  func client(peer: PeerAddress, headers: HTTPFields) -> PeerAddress {
    guard !ranges.isEmpty, trusts(peer) else { return peer }
    let hops = headers[values: .forwardedFor].flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
    var client = peer
    for hop in hops.reversed().prefix(Self.maximumHops) {
      guard let address = PeerAddress(hop) else { return client }
      client = address
      guard trusts(address) else { return client }
    }
    return client
  }
}

extension HTTPField.Name {
  fileprivate static let forwardedFor = Self("X-Forwarded-For")!
}
#endif
