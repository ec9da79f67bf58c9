#if Cloud
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("Where requests are handled", .hangLimit)
struct LoopChannelTests {
  /// Records whether it is on its connection's thread, at the beginning and after waiting for something elsewhere.
  private struct Recorder: ServerChildChannel {
    struct Value: ServerChildChannelValue {
      var channel: any Channel
    }
    let places: Shared<[Bool]>

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
      channel.eventLoop.makeSucceededFuture(Value(channel: channel))
    }

    func handle(value: Value, logger: Logger) async {
      let threads = WorkThreads(running: 1, waiting: 0)
      places.value.append(value.channel.eventLoop.inEventLoop)
      let elsewhere = try? await threads.run { [loop = value.channel.eventLoop] in loop.inEventLoop }
      places.value += [elsewhere ?? true, value.channel.eventLoop.inEventLoop]
    }
  }

  @Test("a request is handled on its connection's thread, also after it has waited for another one")
  func places() async throws {
    let channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let places = Shared<[Bool]>([])
    await LoopChannel(base: Recorder(places: places))
      .handle(value: Recorder.Value(channel: channel), logger: Logger(label: "test"))
    #expect(places.value == [true, false, true])
    try await channel.close()
  }
}
#endif
