import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Makes requests, each over a connection that is kept open for the next one.
protocol HTTPConnections: Sendable {
  /// Begins a request.
  ///
  /// - Parameter call: Is told what arrives, and at the end, once, how the request ended.
  /// - Returns: What ends the request early. Does nothing if it has ended.
  func begin(_ request: URLRequest, body: Data?, for call: HTTPCall) -> @Sendable () -> Void
}

/// What makes the requests.
enum HTTPCarrier: CaseIterable, Sendable {
  /// Foundation's URLSession.
  case system
  #if os(Linux)
  /// libcurl, which Foundation on Linux uses itself. There, URLSession keeps a processor busy as long as a new
  /// connection waits for its response, can't send a body over a connection that was used before, and overlooks now and
  /// then that a connection was cut.
  case curl
  #endif

  static var preferred: HTTPCarrier {
    #if os(Linux)
    .curl
    #else
    .system
    #endif
  }

  /// Whether a response that lasts must not be the first one over its connection.
  var opensConnectionsFirst: Bool {
    #if canImport(FoundationNetworking)
    // Except on Apple's platforms, Foundation goes on asking whether it could write to a connection that it opened for
    // such a request, which uses a whole processor.
    self == .system
    #else
    false
    #endif
  }

  /// - Parameter idleSeconds: How long a request goes on without any progress.
  func connections(idleSeconds: Double) -> any HTTPConnections {
    switch self {
    case .system: SystemConnections(idleSeconds: idleSeconds)
    #if os(Linux)
    case .curl: CurlConnections(idleSeconds: idleSeconds)
    #endif
    }
  }
}
