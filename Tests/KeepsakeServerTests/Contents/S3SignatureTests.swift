#if Cloud
import Crypto
import Foundation
import Testing

@testable import KeepsakeServer

/// Signatures, addresses and answers of S3.
@Suite("The protocol of S3")
struct S3SignatureTests {
  private static let empty = S3Request.emptyHash

  private func signature(_ request: S3Request, token: String? = nil) throws -> (names: String, signature: String) {
    let credentials = try S3Credentials(
      accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", sessionToken: token,
      from: "the example")
    // 2013-05-24, at midnight.
    let headers = request.signed(
      with: credentials, region: "us-east-1", at: Date(timeIntervalSince1970: 1_369_353_600))
    let authorization = try #require(headers.last { $0.name == "authorization" }).value
    #expect(
      authorization.hasPrefix(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders="))
    let words = authorization.split(separator: ",").map { $0.split(separator: "=").last.map(String.init) ?? "" }
    return (words[1], words[2])
  }

  // The examples of "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)", "Signature
  // Calculations for the Authorization Header: Transferring Payload in a Single Chunk", in the Amazon S3 API Reference.

  @Test("the example GET Object is signed as Amazon says")
  func exampleGet() throws {
    let request = S3Request(
      method: "GET", host: "examplebucket.s3.amazonaws.com", path: "/test.txt", headers: [("Range", "bytes=0-9")])
    let signed = try signature(request)
    #expect(signed.names == "host;range;x-amz-content-sha256;x-amz-date")
    #expect(signed.signature == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
  }

  @Test("the example PUT Object is signed as Amazon says")
  func examplePut() throws {
    let request = S3Request(
      method: "PUT", host: "examplebucket.s3.amazonaws.com", path: "/test$file.text",
      headers: [("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")],
      payloadHash: S3Request.hexadecimal(SHA256.hash(data: Data("Welcome to Amazon S3.".utf8))))
    #expect(request.target == "/test%24file.text")
    #expect(try signature(request).signature == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")
  }

  @Test("the examples about a bucket are signed as Amazon says")
  func exampleBucket() throws {
    var request = S3Request(
      method: "GET", host: "examplebucket.s3.amazonaws.com", path: "/", query: [("lifecycle", "")])
    #expect(try signature(request).signature == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
    request.query = [("prefix", "J"), ("max-keys", "2")]
    #expect(request.target == "/?max-keys=2&prefix=J")
    #expect(try signature(request).signature == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
  }

  @Test("a session's token is sent and signed")
  func token() throws {
    let request = S3Request(method: "GET", host: "example.com", path: "/a b/ä")
    #expect(request.target == "/a%20b/%C3%A4")
    let signed = try signature(request, token: "a-token")
    #expect(signed.names == "host;x-amz-content-sha256;x-amz-date;x-amz-security-token")
    #expect(try signed.signature != signature(request).signature)
  }

  // MARK: Addresses

  @Test("an address says where a bucket is, and how it is reached")
  func addresses() throws {
    let amazon = try S3Address("s3://saves/cloud/1?region=eu-central-1")
    #expect(amazon.isSecure && amazon.region == "eu-central-1" && amazon.name == "s3://saves/cloud/1")
    #expect(amazon.target(of: amazon.object("ab/x")) == ("saves.s3.eu-central-1.amazonaws.com", "/cloud/1/ab/x"))
    #expect(amazon.target(of: "") == ("saves.s3.eu-central-1.amazonaws.com", "/"))
    let own = try S3Address("s3://saves?endpoint=http://127.0.0.1:9000")
    #expect(!own.isSecure && own.region == "us-east-1" && own.name == "s3://saves")
    #expect(own.target(of: own.object("ab/x")) == ("127.0.0.1:9000", "/saves/ab/x"))
    #expect(own.target(of: "") == ("127.0.0.1:9000", "/saves"))
    let usual = try S3Address("s3://saves?endpoint=https://s3.example.com:443&style=virtual&region=here")
    #expect(usual.target(of: "x") == ("saves.s3.example.com", "/x"))
  }

  @Test(
    "an address that can't be meant is refused",
    arguments: [
      "s3://saves", "s3:saves?region=here", "s3://SA?region=here", "s3://a_b_c?region=here", "s3://saves?region=he re",
      "s3://saves?region=here&region=there", "s3://saves?region=", "s3://saves?region=here&secret=1",
      "s3://key:secret@saves?region=here", "s3://saves?region=here#x", "s3://saves/../x?region=here",
      "s3://saves?endpoint=http://s3.example.com", "s3://saves?endpoint=ftp://s3.example.com",
      "s3://saves?endpoint=https://s3.example.com/path", "s3://saves?region=here&style=other",
      "s3://sa.ves?region=here", "s3://saves?region=here&credentials=relative", "s3://saves?region=here&profile=x",
      "folder:relative", "folder:", "row", "",
    ])
  func badAddress(_ text: String) {
    let error = #expect(throws: ServerError.self) { try ContentPlace(text) }
    #expect(error?.code == .configuration)
    #expect(error?.message.contains("secret@") == false)
  }

  @Test("contents elsewhere need a database that several servers use, and each place is named once")
  func settings() throws {
    var configuration = ServerConfiguration(data: URL(fileURLWithPath: "/tmp/nowhere"))
    configuration.contents = ["folder:/srv/contents"]
    let alone = #expect(throws: ServerError.self) { try configuration.check() }
    #expect(alone?.code == .configuration && alone?.message.contains("--database") == true)
    configuration.database = "postgres://keepsake@host/keepsake"
    try configuration.check()
    for contents in [
      ["folder:/a", "folder:/a"], ["rows", "rows"], ["folder:/a", "nonsense"],
      ["s3://saves?endpoint=https://a.example", "s3://saves?endpoint=https://b.example"],
    ] {
      configuration.contents = contents
      #expect(throws: ServerError.self) { try configuration.check() }
    }
  }

  // MARK: Credentials

  @Test("credentials come from the environment or from a file's profile, and are never printed")
  func credentials() throws {
    let own = try S3Credentials(environment: ["AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "hidden"])
    #expect(own.sessionToken == nil && !"\(own)".contains("hidden"))
    for environment in [
      [:], ["AWS_ACCESS_KEY_ID": "KEY"], ["AWS_ACCESS_KEY_ID": "K\nY", "AWS_SECRET_ACCESS_KEY": "x"],
    ] {
      #expect(throws: ServerError.self) { try S3Credentials(environment: environment) }
    }
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("credentials-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: file) }  // A file left behind does no harm.
    try Data(
      """
      # Two profiles
      [default]
      aws_access_key_id = ONE
      aws_secret_access_key=a=b/c
      [other]
      aws_access_key_id=TWO
      aws_secret_access_key=d
      aws_session_token=t

      """.utf8
    ).write(to: file)
    let one = try S3Credentials(file: file, profile: "default")
    #expect(one.accessKey == "ONE" && one.secretKey == "a=b/c" && one.sessionToken == nil)
    #expect(try S3Credentials(file: file, profile: "other").sessionToken == "t")
    #expect(throws: ServerError.self) { try S3Credentials(file: file, profile: "third") }
  }

  // MARK: Answers

  private func listing(_ text: String) throws -> S3Listing { try S3Listing(Data(text.utf8)) }

  @Test("a bucket's list is read")
  func lists() throws {
    let listing = try listing(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>saves</Name><Prefix/>
        <KeyCount>2</KeyCount><IsTruncated>true</IsTruncated>
        <Contents><Key>a&amp;b</Key><LastModified>2013-05-24T00:00:00.500Z</LastModified><Size>5</Size>
          <Owner><ID>x</ID></Owner></Contents>
        <Contents><Key>c&#x64;</Key><LastModified>2013-05-24T00:00:01Z</LastModified></Contents>
      </ListBucketResult>
      """)
    #expect(listing.isTruncated)
    #expect(listing.objects.map(\.key) == ["a&b", "cd"])
    #expect(listing.objects.map(\.storedMilliseconds) == [1_369_353_600_000, 1_369_353_601_000])
  }

  @Test(
    "what isn't a bucket's list, or breaks off, is none",
    arguments: [
      "", "<", "<html></html>", "<ListBucketResult>", "<ListBucketResult></ListBucketResult>",
      "<ListBucketResult><IsTruncated>maybe</IsTruncated></ListBucketResult>",
      "<ListBucketResult><IsTruncated>false</IsTruncated>", "<ListBucketResult><IsTruncated>false</ListBucketResult>",
      "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult><x/>",
      "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a</Key></Contents></ListBucketResult>",
      "<ListBucketResult><IsTruncated>&lots;</IsTruncated></ListBucketResult>",
      "<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
      """
      <ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a</Key><LastModified>now</LastModified>\
      </Contents></ListBucketResult>
      """,
    ])
  func badLists(_ text: String) {
    #expect(throws: S3Listing.Unreadable.self) { try listing(text) }
  }

  @Test("an error's code is a word, or nothing")
  func codes() {
    func code(_ text: String) -> String? { S3Listing.errorCode(Data(text.utf8)) }
    #expect(code("<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Key>x</Key></Error>") == "NoSuchKey")
    #expect(code("<Error><Code>two words</Code></Error>") == nil)
    #expect(code("<html><Code>NoSuchKey</Code></html>") == nil)
    #expect(code("NoSuchKey") == nil && code("") == nil)
  }
}
#endif
