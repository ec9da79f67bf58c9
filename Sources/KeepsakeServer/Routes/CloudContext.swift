#if Cloud
import Hummingbird
import Logging
import NIOCore

/// The context of a request: the connection and the address that it came from.
struct CloudContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// Whom the connection comes from: the other end of it, or whom that says it speaks for at its beginning.
  let peer: PeerAddress
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    channel = source.channel
    peer = ProxyProtocol.address(of: source.channel) ?? PeerAddress(source.channel.remoteAddress)
  }
}
#endif
