#if Cloud
import ArgumentParser
import Foundation
import Testing

@testable import KeepsakeCommand
@testable import KeepsakeServer

@Suite struct ServeCommandTests {
  @Test("proxies are addresses or ranges; the PROXY protocol needs one to be trusted; a rate is above 0")
  func proxies() throws {
    _ = try ServeCommand.parse(["--data", "cloud", "--trusted-proxy", "10.0.0.0/8", "--trusted-proxy", "2001:db8::1"])
    _ = try ServeCommand.parse(["--data", "cloud", "--trusted-proxy", "127.0.0.1", "--proxy-protocol"])
    _ = try ServeCommand.parse(["--data", "cloud", "--registrations-per-address", "100000"])
    for words in [
      ["--trusted-proxy", "proxy.example"], ["--trusted-proxy", "10.0.0.0/33"],
      ["--registrations-per-address", "0"],
    ] {
      #expect(throws: (any Error).self, "\(words)") { try ServeCommand.parse(["--data", "cloud"] + words) }
    }
    var configuration = ServerConfiguration(data: URL(fileURLWithPath: "cloud"))
    configuration.expectsProxyProtocol = true
    #expect(throws: ServerError.self) { try configuration.check() }
    configuration.trustedProxies = [try #require(AddressRange("127.0.0.1"))]
    try configuration.check()
    configuration.tls = TLSFiles(certificate: URL(fileURLWithPath: "a"), key: URL(fileURLWithPath: "b"))
    #expect(throws: ServerError.self) { try configuration.check() }
  }
}
#endif
