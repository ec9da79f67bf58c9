#if Cloud
import HummingbirdCore
import Logging
import NIOCore

/// Takes the PROXY protocol's header off the beginning of a trusted proxy's connection. A connection from a trusted
/// proxy without a header is closed; other peers can't send one.
final class ProxyProtocolHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private let refusals: RefusalLog
  private var received = ByteBuffer()

  init(_ refusals: RefusalLog) { self.refusals = refusals }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var part = unwrapInboundIn(data)
    received.writeBuffer(&part)
    switch ProxyProtocol.read(received.readableBytesView) {
    case .incomplete:
      // The connection's end of the pipeline asks for more only after it has received something.
      context.read()
    case .invalid:
      refusals.count(.proxyHeader, from: PeerAddress(context.channel.remoteAddress))
      context.close(promise: nil)
    case .header(let length, let address):
      if let address { ProxyProtocol.set(address, of: context.channel) }
      received.moveReaderIndex(forwardBy: length)
      let rest = received
      received = ByteBuffer()
      if rest.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(rest)) } else { context.read() }
      context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }
  }
}

/// A connection that may begin with the PROXY protocol's header, and continues as `Base`.
struct ProxiedChannel<Base: ServerChildChannel>: ServerChildChannel {
  typealias Value = Base.Value

  var base: Base
  var proxies: TrustedProxies
  var refusals: RefusalLog

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    let address = PeerAddress(channel.remoteAddress)
    return base.setup(channel: channel, logger: logger).flatMapThrowing { value in
      if proxies.trusts(address) {
        try channel.pipeline.syncOperations.addHandler(ProxyProtocolHandler(refusals), position: .first)
      }
      return value
    }
  }

  func handle(value: Value, logger: Logger) async { await base.handle(value: value, logger: logger) }
}
#endif
