#if Cloud
import Dispatch
import HTTPTypes
import Hummingbird
import KeepsakeReplication
import Logging
import NIOCore
import NIOHTTPTypes

/// The outermost middleware: counts requests and measures the time until each response begins, so that an event stream
/// or a download counts with what the server needed, and not with how long the client listens.
struct TelemetryMiddleware: RouterMiddleware {
  let metrics: ServerMetrics

  func handle(
    _ request: Request, context: CloudContext, next: (Request, CloudContext) async throws -> Response
  ) async throws -> Response {
    let start = DispatchTime.now().uptimeNanoseconds
    metrics.requestBegan()
    var status: Int?
    defer {
      metrics.requestEnded(
        request.method, route: context.routeTemplate, status: status,
        nanoseconds: Int64(DispatchTime.now().uptimeNanoseconds - start))
    }
    let response = try await next(request, context)
    status = Int(response.status.code)
    return response
  }
}

extension CloudContext {
  /// The template of the request's route, such as `/v1/devices/{device}`; nil if there is none.
  var routeTemplate: String? { endpointPath.flatMap { $0 == "NotFound" ? nil : $0 } }
}

/// Counts the bytes of bodies in both directions.
final class TrafficHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private let metrics: ServerMetrics

  init(_ metrics: ServerMetrics) { self.metrics = metrics }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .body(let part) = unwrapInboundIn(data) { metrics.didReceive(part.readableBytes) }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .body(let part) = unwrapOutboundIn(data) { metrics.didSend(part.readableBytes) }
    context.write(data, promise: promise)
  }
}
#endif
