#if Cloud
package import Foundation
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import UnixSignals

/// What the HTTP library does at most: a server that answers each request with the bytes of its body.
package enum BareEcho {
  /// Serves on a free port of loopback until SIGTERM or SIGINT.
  ///
  /// - Parameter onRunning: Called once with the address and the port.
  package static func run(onRunning: @escaping @Sendable (URL, Int) -> Void) async throws {
    let router = Router(context: CloudContext.self)
    router.post("echo") { request, _ in
      let body = try await request.body.collect(upTo: ServerLimits.exchangeBytes)
      return Response(
        status: .ok, headers: [.contentType: "application/octet-stream"], body: ResponseBody(byteBuffer: body))
    }
    let host = "127.0.0.1"
    let application = Application(
      router: router, server: .http1(),
      configuration: .init(address: .hostname(host, port: 0), serverName: "Echo"),
      onServerRunning: { channel in
        guard let port = channel.localAddress?.port, let url = URL(string: "http://\(host):\(port)") else { return }
        onRunning(url, port)
      },
      logger: Logger(label: "keepsake.echo"))
    try await application.runService()
  }
}
#endif
