#if Cloud
package import Foundation

/// How a server is run: where it keeps its data, where it listens, and who may register.
///
///     try await KeepsakeServer.run(configuration: ServerConfiguration(data: folder, port: 8080))
package struct ServerConfiguration: Sendable {
  /// Most requests are answered in milliseconds; a stop waits this long for the slow ones and then ends them.
  package static let defaultStopSeconds = 20

  /// The folder that the server owns: its database, large contents, its secret. Made if it isn't there. Two servers never
  /// share one.
  package var data: URL
  /// 0 takes any free port; the callback of `run` tells which.
  package var port: Int
  /// Only this machine by default. The server speaks plain HTTP: put a proxy with TLS in front of it before others reach it.
  package var host: String
  /// Keys with which an install may register. With none given, one is made at the first start and kept in the data folder.
  package var appKeys: [String]
  /// Bytes that each player may keep here: frames of contents, records of versions and values, which all of a player's devices share. At it
  /// the server takes no more saves of that player, but deletes, values and money.
  ///
  /// Nil, the default, for as many as the disk has. May be changed from start to start: what a player has beyond a lower one stays.
  package var quota: Int64?
  /// Seconds that a stop waits for requests under way.
  package var stopSeconds: Int
  /// How long a connection may be idle, and a body slow, before it is closed. Shorter in tests.
  package var idleSeconds = ServerLimits.idleSeconds
  package var slowGraceSeconds = ServerLimits.slowGraceSeconds
  /// Milliseconds since 1970. Handed in by tests.
  package var clock: @Sendable () -> Int64

  package init(data: URL, port: Int = 8080, host: String = "127.0.0.1", appKeys: [String] = []) {
    self.data = data
    self.port = port
    self.host = host
    self.appKeys = appKeys
    stopSeconds = Self.defaultStopSeconds
    clock = { Int64(Date().timeIntervalSince1970 * 1000) }
  }
}
#endif
