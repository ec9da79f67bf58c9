/// The network between a device of a test and the cloud.
///
/// ```swift
/// phone.network = .cut
/// tablet.network = .slow(bytesPerSecond: 2_000)
/// ```
///
/// It belongs to the device, not to a run of the game: it stays when the game is killed and opened again.
public enum TestNetwork: Sendable, Hashable {
  /// Every request arrives immediately.
  case good
  /// No request arrives, as in an airplane or a tunnel. Requests in progress fail.
  case cut
  /// Every request and response takes as long as its bytes need at this speed, at least 1, by the world's clock.
  ///
  /// Nothing arrives until the clock is advanced, by the test or by `TestWorld.settle()`.
  case slow(bytesPerSecond: Int)
  /// Every nth request is lost, counted for each device from when this is set: alternately the request and its
  /// response. At least 1, which loses all of them.
  case losing(every: Int)
}

/// The traffic between one device and the cloud, over all of its runs.
public struct TestTraffic: Sendable, Hashable {
  /// Requests that the device made, including lost ones.
  public var requests = 0
  /// Bytes of the requests and sent contents, in the protocol's JSON form, without HTTP headers.
  public var bytesSent: Int64 = 0
  /// Bytes of the responses and contents that arrived.
  public var bytesReceived: Int64 = 0

  /// The traffic since an earlier moment.
  ///
  /// - Parameters:
  ///   - later: The traffic now.
  ///   - earlier: The traffic before.
  /// - Returns: The difference.
  public static func - (later: Self, earlier: Self) -> Self {
    Self(
      requests: later.requests - earlier.requests, bytesSent: later.bytesSent - earlier.bytesSent,
      bytesReceived: later.bytesReceived - earlier.bytesReceived)
  }
}
