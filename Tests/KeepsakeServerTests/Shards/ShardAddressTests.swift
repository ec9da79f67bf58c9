#if Cloud
import Foundation
import TestSupport
import Testing

@testable import KeepsakeServer

/// How an operator names the databases over which players are spread.
@Suite("Names of shards") struct ShardAddressTests {
  @Test("a name and an address are read, whatever the address has")
  func read() throws {
    let shards = try ShardAddress.all(["two=postgres://a:b=c@d,e/f?options=-csearch_path%3Dg", "eu-2=host=h user=u"])
    #expect(shards.map(\.name) == ["two", "eu-2"])
    #expect(shards.map(\.address) == ["postgres://a:b=c@d,e/f?options=-csearch_path%3Dg", "host=h user=u"])
  }

  @Test(
    "what is no name and address, or is there twice, is refused without a word of the address",
    arguments: [
      ["postgres:secret"], ["=postgres:secret"], ["Two=secret"], ["2=secret"], ["two="], ["home=secret"],
      ["a b=secret"], [String(repeating: "a", count: 33) + "=secret"], ["two=secret", "two=secret2"],
    ])
  func refused(texts: [String]) throws {
    let error = #expect(throws: ServerError.self) { _ = try ShardAddress.all(texts) }
    #expect(error?.code == .configuration && error?.message.contains("secret") == false)
  }

  @Test("shards need a database, and go with no webhooks")
  func configuration() throws {
    var configuration = ServerConfiguration(data: URL(fileURLWithPath: "/nowhere"))
    configuration.shards = ["two=postgres://two"]
    #expect(throws: ServerError.self) { try configuration.check() }
    configuration.database = "postgres://one"
    try configuration.check()
    configuration.webhooks = [try WebhookEndpoint("shop url=https://shop.test/hook secrets=/etc/shop")]
    let error = #expect(throws: ServerError.self) { try configuration.check() }
    #expect(error?.message.contains("no webhooks yet") == true)
    configuration.webhooks = []
    configuration.shards = ["two"]
    #expect(throws: ServerError.self) { try configuration.check() }
  }
}
#endif
