#if Cloud
import HummingbirdCore
import HummingbirdHTTP2
import Logging
import NIOCore
import NIOSSL
import NIOTLS

/// TLS with HTTP/2 or HTTP/1.1, as the client likes, a limit on the number of connections, and one on the time for the
/// handshake: before it is done, no other limit applies to a connection.
struct SecureChannel: ServerChildChannel {
  let base: HTTP2UpgradeChannel
  let handshakeSeconds: Int
  let refusals: RefusalLog
  let gate: ServerGate

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP2UpgradeChannel.Value> {
    base.setup(channel: channel, logger: logger).flatMapThrowing { value in
      let peer = PeerAddress(channel.remoteAddress)
      let address = gate.counted(peer)
      guard gate.connections.open(from: address) else {
        gate.refusals.count(.connection, from: peer)
        channel.close(promise: nil)
        return value
      }
      channel.closeFuture.whenComplete { [connections = gate.connections] _ in connections.close(from: address) }
      let pipeline = channel.pipeline.syncOperations
      try pipeline.addHandler(
        HandshakeLimit(seconds: handshakeSeconds, refusals: refusals),
        position: .after(pipeline.handler(type: NIOSSLServerHandler.self)))
      return value
    }
  }

  func handle(value: HTTP2UpgradeChannel.Value, logger: Logger) async {
    await base.handle(value: value, logger: logger)
  }
}

/// Closes a connection whose handshake isn't done in time, and reports one that fails.
private final class HandshakeLimit: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer

  private let seconds: Int
  private let refusals: RefusalLog
  private var limit: Scheduled<Void>?
  private var isDone = false

  init(seconds: Int, refusals: RefusalLog) { (self.seconds, self.refusals) = (seconds, refusals) }

  func handlerAdded(context: ChannelHandlerContext) {
    let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    limit = context.eventLoop.scheduleTask(in: .seconds(Int64(seconds))) {
      let (handler, context) = loopBound.value
      guard !handler.isDone else { return }
      handler.isDone = true
      handler.refusals.refused("handshake_timeout", .notice) { [:] }
      context.close(promise: nil)
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) { limit?.cancel() }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .handshakeCompleted? = event as? TLSUserEvent {
      isDone = true
      limit?.cancel()
    }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if !isDone, error is NIOSSLError {
      isDone = true
      refusals.refused("handshake_failed", .info) { [:] }
    }
    context.fireErrorCaught(error)
  }

  func channelInactive(context: ChannelHandlerContext) {
    limit?.cancel()
    context.fireChannelInactive()
  }
}
#endif
