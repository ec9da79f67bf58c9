#if Cloud
import HTTPTypes
import HummingbirdCore
import NIOCore
import NIOHTTPTypes

/// Goes on with the connection of an event stream when the task of its request has ended: waiting tasks, that of the
/// request and that of the connection, would take as much memory as the connection itself.
///
/// The server closes a connection when its task ends. That is kept from the socket here, once.
final class EventConnection: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// What a response's body throws when its connection is kept: so the server stops writing it.
  struct Kept: Error {}

  private var stream: EventStream?
  /// Stays until the connection is closed: a server that stops waits for it.
  private var listening: EventHub.Listening?
  /// The stream was taken over, and the task of its connection hasn't ended yet.
  private var awaitsTask = false
  private let graceSeconds: Int
  private var limit: Scheduled<Void>?

  /// - Parameter graceSeconds: How long a connection may take to send the end of its stream.
  init(graceSeconds: Int) { self.graceSeconds = graceSeconds }

  /// Takes over the stream that `channel` has begun to write; what it throws then ends the connection's task.
  ///
  /// - Parameter seq: What the listener knows.
  static func keep(
    _ channel: any Channel, _ stream: EventStream, _ listening: EventHub.Listening, after seq: UInt64
  ) async throws {
    try await channel.eventLoop.submit {
      let pipeline = channel.pipeline.syncOperations
      let handler = try pipeline.handler(type: EventConnection.self)
      let context = try pipeline.context(handler: handler)
      (handler.stream, handler.listening, handler.awaitsTask) = (stream, listening, true)
      // It would go on waiting for the end of the response.
      if let state = try? pipeline.handler(type: HTTPConnectionStateHandler.self) {
        pipeline.removeHandler(state, promise: nil)
      }
      let bound = NIOLoopBound((handler, context), eventLoop: context.eventLoop)
      stream.begin(after: seq) {
        channel.eventLoop.execute { bound.value.0.deliver(bound.value.1) }
      }
    }.get()
    throw Kept()
  }

  private func deliver(_ context: ChannelHandlerContext) {
    guard let stream, context.channel.isActive else { return }
    var hasWritten = false
    defer { if hasWritten { context.flush() } }
    while self.stream != nil, context.channel.isWritable, let next = stream.next() {
      hasWritten = true
      switch next {
      case .event(let event): context.write(wrapOutboundOut(.body(event)), promise: nil)
      case .end: end(context)
      }
    }
  }

  private func end(_ context: ChannelHandlerContext) {
    stream = nil
    listening?.end()
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    limit = context.eventLoop.scheduleTask(in: .seconds(Int64(graceSeconds))) { bound.value.close(promise: nil) }
    context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in bound.value.close(promise: nil) }
  }

  private func forget() {
    limit?.cancel()
    (stream, listening, limit) = (nil, nil, nil)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    deliver(context)
    context.fireChannelWritabilityChanged()
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    guard awaitsTask else {
      context.close(mode: mode, promise: promise)
      return
    }
    // The task closes what it sends first, and then the whole connection.
    if mode == .all { awaitsTask = false }
    promise?.succeed()
  }

  func channelInactive(context: ChannelHandlerContext) {
    forget()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { forget() }
}
#endif
