import BenchmarkKit
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What an exchange takes at least: the same request to the same cloud, made by hand, and nothing kept of the answer.
/// It is a device of a player of its own.
struct BareClient {
  private struct Account: Decodable { var token: String }
  private let exchange: URL
  private let token: String
  private let session = URLSession(configuration: .ephemeral)

  init(_ cloud: CloudProcess) async throws {
    exchange = cloud.url.appending(path: "v1/exchange")
    var request = URLRequest(url: cloud.url.appending(path: "v1/devices"))
    request.httpMethod = "POST"
    request.setValue(cloud.appKey, forHTTPHeaderField: "Keepsake-App-Key")
    request.httpBody = Data(#"{"name":"bare"}"#.utf8)
    let (body, _) = try await session.data(for: request)
    token = try JSONDecoder().decode(Account.self, from: body).token
  }

  /// A save whose request's body has about so many bytes, as docs/PROTOCOL.md has it.
  func post(_ number: Int, bytes: Int) async throws {
    var noise = Noise(seed: UInt64(number) + 1)
    func digits(_ count: Int) -> String { (0..<count).map { _ in String(noise.next(below: 16), radix: 16) }.joined() }
    let (id, hash) = (digits(32), digits(64))
    let frame = Data((0..<max(bytes - 500, 0) * 3 / 4).map { _ in UInt8(noise.next(below: 256)) }).base64EncodedString()
    let body = """
      {"protocolVersion":1,"cursor":{"epoch":0,"seq":0,"mark":0},"limit":1,\
      "versions":[{"id":"\(id)","slot":"bare \(number)",\
      "contents":["\(hash)"],"length":30000,"savedAtMilliseconds":5,"writer":"0000000000000001"}],\
      "contents":[{"hash":"\(hash)","length":30000,"bytes":"\(frame)"}]}
      """
    var request = URLRequest(url: exchange)
    request.httpMethod = "POST"
    request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    request.httpBody = Data(body.utf8)
    let (answer, _) = try await session.data(for: request)
    try BenchmarkError.require(
      String(decoding: answer, as: UTF8.self).contains("accepted"),
      "The cloud said to a bare exchange: \(String(decoding: answer.prefix(300), as: UTF8.self))")
  }
}
