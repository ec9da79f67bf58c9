/// How a device of a test reaches the cloud.
///
///     phone.network = .cut
///     tablet.network = .slow(bytesPerSecond: 2_000)
///
/// It belongs to the device, not to a run of the game: a cut network is still cut when the game was killed and opened again.
public enum TestNetwork: Sendable, Hashable {
  /// Every request arrives, at once.
  case good
  /// No request arrives: an airplane, a tunnel. What is under way breaks off.
  case cut
  /// Every request and every answer takes as long as its bytes need at this speed, by the world's clock; at least 1.
  ///
  /// Nothing arrives until the clock is turned: by the test, or by `TestWorld.settle()`.
  case slow(bytesPerSecond: Int)
  /// One request in so many is lost, counted per device from the moment at which this is set: by turns before the cloud has it, and after, so that only its
  /// answer is lost. At least 1, which loses all.
  case losing(every: Int)
}

/// What went between one device and the cloud, in all of its runs.
public struct TestTraffic: Sendable, Hashable {
  /// Requests that the device made, lost ones included.
  public var requests = 0
  /// Bytes of these requests and of the contents sent: of the protocol's JSON forms, without HTTP's heads.
  public var bytesSent: Int64 = 0
  /// Bytes of answers and contents that arrived.
  public var bytesReceived: Int64 = 0

  /// What came after `earlier`.
  public static func - (later: Self, earlier: Self) -> Self {
    Self(
      requests: later.requests - earlier.requests, bytesSent: later.bytesSent - earlier.bytesSent,
      bytesReceived: later.bytesReceived - earlier.bytesReceived)
  }
}
