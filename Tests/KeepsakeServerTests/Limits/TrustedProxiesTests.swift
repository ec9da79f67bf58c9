#if Cloud
import HTTPTypes
import Testing

@testable import KeepsakeServer

@Suite("Clients behind proxies")
struct TrustedProxiesTests {
  private func address(_ text: String) throws -> PeerAddress { try #require(PeerAddress(text)) }

  @Test("addresses are read as proxies write them, and nothing else is")
  func addresses() throws {
    #expect(try address("192.0.2.1:8080") == address(" 192.0.2.1 "))
    #expect(try address("\"[2001:db8::1]:80\"") == address("2001:db8::1"))
    #expect(try address("::ffff:192.0.2.1") == address("192.0.2.1"))
    for text in ["", "unknown", "192.0.2", "192.0.2.256", "1.2.3.4.5", "[::1", "_hidden", "2001:db8::1::2"] {
      #expect(PeerAddress(text) == nil, "\(text)")
    }
    #expect(try address("2001:db8:1:2:3:4:5:6").network == address("2001:db8:1:2::"))
    #expect(try address("127.9.0.1").isLoopback && address("::1").isLoopback && !address("10.0.0.1").isLoopback)
  }

  @Test(
    "a range contains the addresses with its first bits, of its own kind",
    arguments: [
      ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("10.0.0.128/25", "10.0.0.127", false),
      ("10.0.0.128/25", "10.0.0.128", true), ("0.0.0.0/0", "203.0.113.9", true), ("0.0.0.0/0", "2001:db8::1", false),
      ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.8", false), ("2001:db8::/33", "2001:db8:7fff::", true),
      ("2001:db8::/33", "2001:db8:8000::", false), ("10.0.0.0/8", "::ffff:10.1.2.3", true),
    ])
  func ranges(range: String, text: String, isInside: Bool) throws {
    #expect(try #require(AddressRange(range)).contains(address(text)) == isInside)
  }

  @Test(
    "what isn't a range is refused",
    arguments: ["", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8", "host", "10.0.0.0/+8"])
  func notRanges(text: String) { #expect(AddressRange(text) == nil) }

  @Test(
    "X-Forwarded-For is believed from the right, through trusted proxies only",
    arguments: [
      // From the proxy itself.
      ("10.0.0.1", [], "10.0.0.1"),
      ("10.0.0.1", ["203.0.113.5"], "203.0.113.5"),
      // What the client claims stands on the left.
      ("10.0.0.1", ["198.51.100.1, 203.0.113.5"], "203.0.113.5"),
      ("10.0.0.1", ["198.51.100.1, 203.0.113.5, 10.0.0.2"], "203.0.113.5"),
      ("10.0.0.1", ["198.51.100.1", "203.0.113.5", "10.0.0.2"], "203.0.113.5"),
      ("10.0.0.1", ["10.0.0.9, 10.0.0.8"], "10.0.0.9"),
      // Nobody else is believed.
      ("203.0.113.5", ["198.51.100.1"], "203.0.113.5"),
      ("10.0.0.1", ["198.51.100.1, unknown"], "10.0.0.1"),
      ("10.0.0.1", ["198.51.100.1, nonsense, 10.0.0.2"], "10.0.0.2"),
      ("10.0.0.1", ["198.51.100.1,"], "10.0.0.1"),
    ])
  func forwarded(peer: String, lines: [String], client: String) throws {
    let proxies = TrustedProxies([try #require(AddressRange("10.0.0.0/24"))])
    var headers = HTTPFields()
    for line in lines { headers.append(HTTPField(name: HTTPField.Name("X-Forwarded-For")!, value: line)) }
    #expect(try proxies.client(peer: address(peer), headers: headers) == address(client))
    #expect(try TrustedProxies([]).client(peer: address(peer), headers: headers) == address(peer))
  }

  private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

  @Test("headers of the PROXY protocol are read in both versions, and may arrive byte by byte")
  func proxyProtocol() throws {
    let v4 = Self.signature + [0x21, 0x11, 0, 12, 203, 0, 113, 5, 10, 0, 0, 1, 0, 80, 1, 187]
    let v6 =
      Self.signature + [0x21, 0x21, 0, 39, 0x20, 1, 0xD, 0xB8] + Array(repeating: 0, count: 11) + [1]
      + Array(repeating: 0, count: 23)
    let headers: [([UInt8], PeerAddress?)] = [
      (Array("PROXY TCP4 203.0.113.5 10.0.0.1 5000 443\r\n".utf8), try address("203.0.113.5")),
      (Array("PROXY TCP6 2001:db8::1 ::1 5000 443\r\n".utf8), try address("2001:db8::1")),
      (Array("PROXY UNKNOWN\r\n".utf8), nil), (v4, try address("203.0.113.5")), (v6, try address("2001:db8::1")),
      (Self.signature + [0x20, 0, 0, 0], nil), (Self.signature + [0x21, 0x31, 0, 1, 9], nil),
    ]
    for (header, client) in headers {
      for count in 0..<header.count { #expect(ProxyProtocol.read(header.prefix(count)) == .incomplete) }
      #expect(ProxyProtocol.read(header + Array("GET /".utf8)) == .header(length: header.count, client))
    }
  }

  @Test("what doesn't begin like a header of the PROXY protocol is refused at once, and so is a damaged one")
  func notProxyProtocol() {
    let long = "PROXY TCP4 " + String(repeating: "1", count: 200)
    for text in ["GET / HTTP/1.1\r\n", "PROXY TCP4 x y 1 2\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", "PROXY \n", long] {
      #expect(ProxyProtocol.read(Array(text.utf8)) == .invalid, "\(text)")
    }
    for end: [UInt8] in [[0x31, 0x11, 0, 12], [0x22, 0x11, 0, 12], [0x21, 0x11, 0xFF, 0xFF]] {
      #expect(ProxyProtocol.read(Self.signature + end) == .invalid)
    }
    #expect(
      ProxyProtocol.read(Self.signature + [0x21, 0x11, 0, 4, 1, 2, 3, 4]) == .invalid, "shorter than its addresses")
  }
}
#endif
