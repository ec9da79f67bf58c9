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

  /// The template of the request's route, such as `/v1/devices/{device}`; nil if there is none.
  var routeTemplate: String? { endpointPath.flatMap { $0 == "NotFound" ? nil : $0 } }

  /// The name under which a peer's wrong guesses are counted: an IPv4 address, or the half of an IPv6 address that a
  /// provider assigns as a unit.
  var peerName: String {
    switch peer {
    case .v4(let address):
      withUnsafeBytes(of: address.address.sin_addr) { "4:" + $0.map { String($0) }.joined(separator: ".") }
    case .v6(let address):
      withUnsafeBytes(of: address.address.sin6_addr) {
        "6:" + $0.prefix(8).map { String($0, radix: 16) }.joined(separator: ":")
      }
    case .unixDomainSocket, nil:
      "local"
    }
  }
}
#endif
