import Foundation
import KeepsakePlatform

/// Makes requests, each over a connection that is kept open for the next one.
protocol HTTPConnections: Sendable {
  /// Begins a request.
  ///
  /// - Parameter call: Is told what arrives, and at the end, once, how the request ended.
  /// - Returns: What ends the request early. Does nothing if it has ended.
  func begin(_ request: URLRequest, body: Data?, for call: HTTPCall) -> @Sendable () -> Void
}

/// What makes the requests.
struct HTTPCarrier: Equatable, Sendable, CustomStringConvertible {
  let description: String
  /// Whether a response that lasts must not be the first one over its connection.
  let opensConnectionsFirst: Bool
  private let make: @Sendable (Double) -> any HTTPConnections

  init(_ name: String, opensConnectionsFirst: Bool, make: @escaping @Sendable (Double) -> any HTTPConnections) {
    (description, self.opensConnectionsFirst, self.make) = (name, opensConnectionsFirst, make)
  }

  /// Foundation's URLSession. Except on Apple's platforms, Foundation goes on asking whether it could write to a
  /// connection that it opened for a response that lasts, which uses a whole processor.
  static let system = HTTPCarrier("URLSession", opensConnectionsFirst: !HostSystem.current.isApple) {
    SystemConnections(idleSeconds: $0)
  }

  /// - Parameter idleSeconds: How long a request goes on without any progress.
  func connections(idleSeconds: Double) -> any HTTPConnections { make(idleSeconds) }

  static func == (one: HTTPCarrier, other: HTTPCarrier) -> Bool { one.description == other.description }
}
