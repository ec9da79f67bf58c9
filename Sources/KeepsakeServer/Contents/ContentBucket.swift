#if Cloud
import Foundation
import NIOHTTP1

/// Contents in a bucket of an object storage that speaks the protocol of S3: PUT, GET with a range, DELETE, and
/// ListObjectsV2.
struct ContentBucket: ContentStorage {
  private let client: S3Client
  private let address: S3Address

  var name: String { address.name }

  /// What says whose contents these are, beside them.
  private static let mark = "keepsake-cloud"

  init(_ address: S3Address, limits: S3Limits = S3Limits(), credentials: @escaping @Sendable () -> S3Credentials) {
    self.address = address
    client = S3Client(address, limits: limits, credentials: credentials)
  }

  func put(_ file: URL, as key: ContentKey) async throws {
    _ = try ContentFile.size(file)
    let answer = try await client.run(
      "PUT", object(key), headers: [("content-type", "application/zstd")], body: try S3Body(file))
    guard answer.status == 200 else { throw failure("PUT", answer) }
  }

  func size(of key: ContentKey) async throws -> Int? {
    try await part(0..<1, of: key)?.total
  }

  func bytes(_ range: Range<Int>, of key: ContentKey) async throws -> Data? {
    if range.isEmpty { return try await size(of: key) == nil ? nil : Data() }
    return try await part(range, of: key)?.bytes
  }

  private func part(_ range: Range<Int>, of key: ContentKey) async throws -> (bytes: Data, total: Int)? {
    let wanted = "\(range.lowerBound)-\(range.upperBound - 1)"
    let answer = try await client.run(
      "GET", object(key), headers: [("range", "bytes=\(wanted)")], largest: max(range.count, 64 << 10))
    switch answer.status {
    case 206:
      let said = answer.headers.first(name: "content-range") ?? ""
      let parts = said.split(separator: "/", omittingEmptySubsequences: false)
      guard parts.count == 2, parts[0] == "bytes \(wanted)", let total = Int(parts[1]),
        answer.body.count == range.count
      else { throw ContentStorageError(.damaged, "A content in the bucket is shorter than was put, or cut.") }
      return (answer.body, total)
    case 404 where answer.errorCode == "NoSuchKey": return nil
    case 416: throw ContentStorageError(.damaged, "A content in the bucket is shorter than was put.")
    default: throw failure("GET", answer)
    }
  }

  func delete(_ key: ContentKey) async throws {
    let answer = try await client.run("DELETE", object(key))
    if (200...204).contains(answer.status) || (answer.status == 404 && answer.errorCode == "NoSuchKey") { return }
    throw failure("DELETE", answer)
  }

  func list(_ prefix: String, after place: String?, limit: Int) async throws -> ContentPage {
    let listing = try await objects(prefix, after: place, limit: limit)
    let own = address.object("")
    var page = ContentPage()
    for object in listing.objects {
      guard object.key.hasPrefix(own) else {
        throw ContentStorageError(.damaged, "The bucket lists what wasn't asked for.")
      }
      guard let key = ContentKey(text: object.key.dropFirst(own.count)) else { continue }
      page.entries.append(ContentPage.Entry(key: key, storedMilliseconds: object.storedMilliseconds))
    }
    guard listing.isTruncated else { return page }
    guard let last = listing.objects.last?.key.dropFirst(own.count), place.map({ $0 < last }) ?? true else {
      throw ContentStorageError(.damaged, "The bucket's list doesn't go on.")
    }
    page.next = String(last)
    return page
  }

  private func objects(_ prefix: String, after place: String?, limit: Int) async throws -> S3Listing {
    var query = [
      (name: "list-type", value: "2"), (name: "max-keys", value: "\(limit)"),
      (name: "prefix", value: address.object(prefix)),
    ]
    if let place { query.append((name: "start-after", value: address.object(place))) }
    let answer = try await client.run("GET", query: query, largest: 4 << 20)
    guard answer.status == 200 else { throw failure("GET of the bucket", answer) }
    do {
      return try S3Listing(answer.body)
    } catch {
      throw ContentStorageError(.damaged, "The bucket's list can't be read.", cause: error)
    }
  }

  func shutDown() async throws { try await client.close() }

  private func object(_ key: ContentKey) -> String { address.object(key.text) }

  private func failure(_ method: String, _ answer: S3Client.Answer) -> ContentStorageError {
    let code: ContentStorageError.Code = answer.errorCode == "NoSuchBucket" ? .notThere : .refused
    return ContentStorageError(code, S3Client.refusal(method, answer))
  }

  // MARK: Whose it is

  /// Sees that what is here is of this cloud; marks a bucket or prefix that has nothing yet.
  ///
  /// - Parameter mayBeNew: Whether it may have nothing yet.
  /// - Throws: `ServerError` with `configuration` if another cloud's contents are here; `ContentStorageError`.
  func claim(for cloud: String, mayBeNew: Bool = true) async throws {
    let object = address.object(Self.mark)
    var answer = try await client.run("GET", object)
    if answer.status == 404, answer.errorCode == "NoSuchKey" {
      guard mayBeNew else {
        throw ServerError(
          .configuration, "\(name) has no contents, and this cloud's are in one of that name: is it at this endpoint?")
      }
      let found = try await objects("", after: nil, limit: 1).objects
      guard found.isEmpty else {
        throw ServerError(
          .configuration, "\(name) has something that isn't this cloud's: name an empty bucket, or another prefix.")
      }
      let put = try await client.run("PUT", object, body: S3Body(Data(cloud.utf8)))
      guard put.status == 200 else { throw failure("PUT", put) }
      answer = try await client.run("GET", object)
    }
    guard answer.status == 200 else { throw failure("GET", answer) }
    guard answer.body == Data(cloud.utf8) else {
      throw ServerError(.configuration, "\(name) has the contents of another cloud: name another bucket or prefix.")
    }
  }
}
#endif
