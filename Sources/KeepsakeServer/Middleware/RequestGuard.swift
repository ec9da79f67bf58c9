#if Cloud
import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Guards each connection: refuses it if there are too many, responds to `Expect: 100-continue` unless the body is too
/// large, and closes it if no request comes, if its body is endless, or if a body comes or a response is read too
/// slowly.
///
/// What a connection holds in memory is limited here, too: what is read of it at a time, and what waits to be sent.
final class RequestGuard: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// More than the largest body that any route accepts, so that the route can respond before the connection is closed.
  private static let mostBodyBytes = ServerLimits.contentBytes + (4 << 20)
  /// What is written at a time: little enough that even a slow reader takes several in a window.
  private static let writtenAtOnce = 8 << 10

  private let gate: ServerGate
  private let requestSeconds: Int
  private let countsConnections: Bool
  private let slice: TimeAmount
  private enum Admission {
    case unknown
    /// With the address, unless it is a proxy's.
    case counted(PeerAddress?)
    case refused
  }
  private var admission = Admission.unknown
  private var hasRequest = false
  private var noRequestCheck: Scheduled<Void>?

  private var bodyBytes = 0
  private var isInBody = false
  /// The server has asked for more, and nothing has come since.
  private var isReading = false
  private var incoming: SpeedWindow
  private var pendingBytes = 0
  /// The reader has caught up, at some time during this slice.
  private var wasDrained = true
  private var outgoing: SpeedWindow
  private var check: Scheduled<Void>?

  /// - Parameters:
  ///   - graceSeconds: The window over which speed is measured.
  ///   - requestSeconds: How long a new connection may send no request.
  ///   - countsConnections: False for what comes through TLS: there, each stream of a connection has a guard, and the
  ///     connection was counted before (`SecureChannel`).
  init(_ gate: ServerGate, graceSeconds: Int, requestSeconds: Int, countsConnections: Bool = true) {
    self.gate = gate
    self.requestSeconds = requestSeconds
    self.countsConnections = countsConnections
    slice = .milliseconds(max(1, Int64(graceSeconds) * 1000 / Int64(SpeedWindow.slices)))
    let minimum = graceSeconds * ServerLimits.minimumBytesPerSecond
    (incoming, outgoing) = (SpeedWindow(minimumBytes: minimum), SpeedWindow(minimumBytes: minimum))
  }

  // MARK: Connections

  func handlerAdded(context: ChannelHandlerContext) {
    let channel = context.channel
    defer { if channel.isActive { begin(context) } }
    // A stream of HTTP/2 has none of these options, and a channel traps for those that it doesn't have.
    guard channel is any SocketOptionProvider else { return }
    // Failures are of a connection that is gone by now.
    channel.setOption(
      .recvAllocator,
      value: AdaptiveRecvByteBufferAllocator(
        minimum: ServerLimits.readAtLeastBytes, initial: ServerLimits.readFirstBytes,
        maximum: ServerLimits.readAtOnceBytes)
    ).whenComplete { _ in }
    channel.setOption(
      .writeBufferWaterMark,
      value: .init(low: ServerLimits.responsePartBytes / 2, high: ServerLimits.responsePartBytes)
    ).whenComplete { _ in }
    for option in [ChannelOptions.socketOption(.so_sndbuf), ChannelOptions.socketOption(.so_rcvbuf)] {
      channel.setOption(option, value: ChannelOptions.Types.SocketOption.Value(ServerLimits.socketBufferBytes))
        .whenComplete { _ in }
    }
  }

  func channelActive(context: ChannelHandlerContext) {
    begin(context)
    context.fireChannelActive()
  }

  private func begin(_ context: ChannelHandlerContext) {
    guard case .unknown = admission else { return }
    let peer = PeerAddress(context.channel.remoteAddress)
    let counted = gate.counted(peer)
    guard !countsConnections || gate.connections.open(from: counted) else {
      admission = .refused
      gate.refusals.count(.connection, from: peer)
      let fields: HTTPFields = [.connection: "close", .contentLength: "0", .retryAfter: "5"]
      context.write(
        wrapOutboundOut(.head(HTTPResponse(status: .serviceUnavailable, headerFields: fields))), promise: nil)
      let loopBound = NIOLoopBound(context, eventLoop: context.eventLoop)
      context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in loopBound.value.close(promise: nil) }
      return
    }
    admission = .counted(counted)
    noRequestCheck = schedule(context, in: .seconds(Int64(requestSeconds))) { guardian, context in
      guard !guardian.hasRequest else { return }
      guardian.close(context, for: .noRequest)
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) { end() }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  private func end() {
    if countsConnections, case .counted(let address) = admission { gate.connections.close(from: address) }
    admission = .refused
    isInBody = false
    for task in [noRequestCheck, check] { task?.cancel() }
    (noRequestCheck, check) = (nil, nil)
  }

  private func close(_ context: ChannelHandlerContext, for kind: RefusalLog.Kind) {
    gate.refusals.count(kind, from: PeerAddress(context.channel.remoteAddress))
    context.close(promise: nil)
  }

  // MARK: Requests

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .refused = admission { return }
    switch unwrapInboundIn(data) {
    case .head(let head):
      hasRequest = true
      noRequestCheck?.cancel()
      noRequestCheck = nil
      bodyBytes = 0
      isInBody = true
      incoming.restart()
      scheduleSlice(context)
      if head.headerFields[.expect]?.lowercased() == "100-continue", !Self.isTooLarge(head) {
        context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
      }
    case .body(let part):
      bodyBytes += part.readableBytes
      incoming.moved(part.readableBytes)
      if bodyBytes > Self.mostBodyBytes {
        close(context, for: .endlessBody)
        return
      }
    case .end:
      isInBody = false
    }
    context.fireChannelRead(data)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    isReading = false
    context.fireChannelReadComplete()
  }

  func read(context: ChannelHandlerContext) {
    isReading = true
    context.read()
  }

  private static func isTooLarge(_ head: HTTPRequest) -> Bool {
    guard let length = head.headerFields[.contentLength].flatMap({ Int($0) }) else { return false }
    return length > ServerLimits.contentBytes
  }

  // MARK: Responses

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard case .body(var rest) = unwrapOutboundIn(data), rest.readableBytes > 0 else {
      context.write(data, promise: promise)
      return
    }
    pendingBytes += rest.readableBytes
    let loopBound = NIOLoopBound(self, eventLoop: context.eventLoop)
    while let part = rest.readSlice(length: min(rest.readableBytes, Self.writtenAtOnce)), part.readableBytes > 0 {
      let written = context.eventLoop.makePromise(of: Void.self)
      let count = part.readableBytes
      written.futureResult.whenComplete { _ in loopBound.value.didWrite(count) }
      if rest.readableBytes == 0 { written.futureResult.cascade(to: promise) }
      context.write(wrapOutboundOut(.body(part)), promise: written)
    }
    scheduleSlice(context)
  }

  private func didWrite(_ count: Int) {
    pendingBytes -= count
    outgoing.moved(count)
    if pendingBytes == 0 { wasDrained = true }
  }

  // MARK: Speed

  private func scheduleSlice(_ context: ChannelHandlerContext) {
    guard check == nil else { return }
    wasDrained = pendingBytes == 0
    outgoing.restart()
    check = schedule(context, in: slice) { $0.endSlice($1) }
  }

  private func endSlice(_ context: ChannelHandlerContext) {
    check = nil
    guard context.channel.isActive else { return }
    if isInBody {
      if !isReading { incoming.paused() }
      if incoming.endSlice() { return close(context, for: .slowBody) }
    }
    if wasDrained {
      outgoing.restart()
    } else if outgoing.endSlice() {
      return close(context, for: .slowReader)
    }
    wasDrained = pendingBytes == 0
    guard isInBody || pendingBytes > 0 else { return }
    check = schedule(context, in: slice) { $0.endSlice($1) }
  }

  private func schedule(
    _ context: ChannelHandlerContext, in time: TimeAmount,
    _ body: @escaping @Sendable (RequestGuard, ChannelHandlerContext) -> Void
  ) -> Scheduled<Void> {
    let loopBound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    return context.eventLoop.scheduleTask(in: time) {
      let (guardian, context) = loopBound.value
      body(guardian, context)
    }
  }
}
#endif
