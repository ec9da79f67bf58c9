#if Cloud
import Hummingbird
import Logging
import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The context of a request: the address that it came from.
struct CloudContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let peer: SocketAddress?

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    peer = source.channel.remoteAddress
  }

  /// The name under which a peer's wrong guesses are counted: an IPv4 address, or the half of an IPv6 address that a
  /// provider assigns as a unit.
  var peerName: String {
    switch peer {
    // By their offsets, which all systems share: which module has the members of these structs depends on the order in
    // which the compiler sees the imports of other files.
    case .v4(let address):
      withUnsafeBytes(of: address.address) { "4:" + $0[4..<8].map { String($0) }.joined(separator: ".") }
    case .v6(let address):
      withUnsafeBytes(of: address.address) {
        "6:" + $0[8..<16].map { String($0, radix: 16) }.joined(separator: ":")
      }
    case .unixDomainSocket, nil:
      "local"
    }
  }
}
#endif
