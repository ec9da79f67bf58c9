#if os(Linux)
extension HTTPCarrier: CaseIterable {
  /// libcurl, which Foundation on Linux uses itself. There, URLSession keeps a processor busy as long as a new
  /// connection waits for its response, can't send a body over a connection that was used before, and overlooks now and
  /// then that a connection was cut.
  static let curl = HTTPCarrier("libcurl", opensConnectionsFirst: false) { CurlConnections(idleSeconds: $0) }

  static let allCases: [HTTPCarrier] = [.system, .curl]
  static let preferred = HTTPCarrier.curl
}
#endif
