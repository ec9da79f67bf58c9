#if Cloud
import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Guards each connection: responds to `Expect: 100-continue` unless the body is too large, and closes connections
/// whose bodies are endless or too slow.
final class RequestGuard: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// More than the largest body that any route accepts, so that the route can respond before the connection is closed.
  private static let mostBodyBytes = ServerLimits.contentBytes + (4 << 20)

  private let graceSeconds: Int
  private var bodyBytes = 0
  private var bodyStart: NIODeadline?
  private var check: Scheduled<Void>?

  init(graceSeconds: Int) { self.graceSeconds = graceSeconds }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      bodyBytes = 0
      bodyStart = .now()
      scheduleCheck(context)
      if head.headerFields[.expect]?.lowercased() == "100-continue", !Self.isTooLarge(head) {
        context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
      }
    case .body(let part):
      bodyBytes += part.readableBytes
      if bodyBytes > Self.mostBodyBytes {
        context.close(promise: nil)
        return
      }
    case .end:
      endBody()
    }
    context.fireChannelRead(data)
  }

  func handlerRemoved(context: ChannelHandlerContext) { endBody() }

  func channelInactive(context: ChannelHandlerContext) {
    endBody()
    context.fireChannelInactive()
  }

  private static func isTooLarge(_ head: HTTPRequest) -> Bool {
    guard let length = head.headerFields[.contentLength].flatMap({ Int($0) }) else { return false }
    return length > ServerLimits.contentBytes
  }

  private func endBody() {
    bodyStart = nil
    check?.cancel()
    check = nil
  }

  private func scheduleCheck(_ context: ChannelHandlerContext) {
    check?.cancel()
    let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    check = context.eventLoop.scheduleTask(in: .seconds(Int64(graceSeconds))) {
      let (guardian, context) = loopBound.value
      guardian.checkSpeed(context)
    }
  }

  private func checkSpeed(_ context: ChannelHandlerContext) {
    guard let bodyStart else { return }
    let seconds = (NIODeadline.now() - bodyStart).nanoseconds / 1_000_000_000
    if bodyBytes < Int(seconds) * ServerLimits.minimumBodyBytesPerSecond {
      context.close(promise: nil)
    } else {
      scheduleCheck(context)
    }
  }
}
#endif
