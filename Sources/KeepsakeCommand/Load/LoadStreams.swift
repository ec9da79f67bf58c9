#if Cloud
import Foundation
import KeepsakePlatform
import KeepsakeReplication
/// Event streams that only listen: all of them on one thread.
final class LoadStreams {
  private static let timeoutSeconds = 60
  private static let bytesAtOnce = 64 << 10

  private let clock: LoadClock
  private var sockets: [LoadSocket] = []
  private(set) var record = LoadRecord()

  /// Opens this many streams, with the tokens in turn; each has had its first event when this returns.
  init(_ count: Int, at address: LoadAddress, tokens: [String], clock: LoadClock) throws(LoadError) {
    self.clock = clock
    for number in 0..<count {
      let socket = try LoadSocket(address, timeoutSeconds: Self.timeoutSeconds)
      let headers = [("Authorization", "Bearer \(tokens[number % tokens.count])"), ("Accept", "text/event-stream")]
      try socket.send(LoadConnection.head("GET", "/v1/events", headers, nil, address))
      var head = Data()
      while head.range(of: Data("data:".utf8)) == nil {
        guard head.count < Self.bytesAtOnce, let part = try socket.receive() else { throw LoadError("no event stream") }
        head.append(part)
      }
      sockets.append(socket)
    }
  }

  /// Listens until the end.
  func run() {
    let event = Data("data:".utf8)
    var polled = sockets.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
    while !clock.isEnded {
      guard poll(&polled, nfds_t(polled.count), 200) > 0 else { continue }
      for index in polled.indices where polled[index].revents != 0 {
        do throws(LoadError) {
          guard let part = try sockets[index].receive() else { throw LoadError("stream ended") }
          // An event that arrives in two parts may be counted twice or not at all: this is no measurement.
          if clock.seconds() != nil, part.range(of: event) != nil { record.events += 1 }
        } catch {
          record.fail(error.kind)
          // A negative descriptor is left out from now on.
          polled[index].fd = -1
        }
        polled[index].revents = 0
      }
    }
  }
}
#endif
