#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

/// What the commands that ask a running cloud have in common.
struct AdminOptions: ParsableArguments {
  @Option(name: .long, help: "The address of the cloud's port for the studio, such as http://127.0.0.1:8081.")
  var url: String

  @Option(
    name: .long,
    help: ArgumentHelp(
      "A file with an admin key, as keepsake admin key create prints it.", valueName: "file"),
    completion: .file())
  var keyFile: String

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  /// Far larger than any key.
  private static let maximumKeyBytes = 4 * 1_024

  func validate() throws { _ = try address() }

  private func address() throws -> URL {
    guard let url = URL(string: url), ["http", "https"].contains(url.scheme?.lowercased() ?? ""), url.host != nil
    else {
      throw ValidationError("--url takes a URL such as http://127.0.0.1:8081.")
    }
    return url
  }

  func client() throws -> AdminClient {
    // Such as a shell's <(...), which keeps the key off the disk.
    let bytes = try AtomicFile.read(
      URL(fileURLWithPath: keyFile), maximumBytes: Self.maximumKeyBytes, acceptsPipes: true)
    guard let bytes else {
      throw CommandFailure(
        .noInput, "there is no file \(keyFile)", next: "name a file with an admin key after --key-file")
    }
    let key = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    guard !key.isEmpty, !key.contains(where: \.isWhitespace) else {
      throw CommandFailure(.data, "\(keyFile) has no admin key", next: "create one with keepsake admin key create")
    }
    return AdminClient(http: HTTPStudio(url: try address(), key: key))
  }
}

/// Asks a cloud's port for the studio.
struct AdminClient {
  let http: HTTPStudio
  /// What to do if the cloud doesn't have what was named.
  var absentAdvice = "check --url and the ids"
  /// Far more than any player has, with hundreds of items each.
  private static let maximumPages = 10_000

  private struct Refusal: Decodable {
    struct Details: Decodable {
      var code: String
      var message: String
    }
    var error: Details
  }

  /// Sends a request, and returns the answer's body. Throws a `CommandFailure` for any other answer than a success.
  func send(
    _ method: String, _ path: [String], query: [String: String] = [:], body: [String: any Encodable & Sendable]? = nil
  ) async throws -> Data {
    let body = try body.map { try JSONEncoder().encode($0.mapValues(AnyValue.init)) }
    do {
      let answer = try await http.send(method, path, query: query, body: body)
      try check(answer)
      return answer.body
    } catch let failure as TransportFailure {
      throw Self.unreachable(failure)
    }
  }

  /// Returns what is on all pages of a list.
  ///
  /// - Parameter read: Returns what is on a page, and the parameters of the next one; nil for the last.
  func pages<Page: Decodable, Item>(
    of type: Page.Type, _ path: [String], query: [String: String] = [:],
    _ read: (Page) -> (items: [Item], next: [String: String]?)
  ) async throws -> [Item] {
    var (items, more): ([Item], [String: String]) = ([], [:])
    for _ in 0..<Self.maximumPages {
      let answer = try await send("GET", path, query: query.merging(more) { $1 })
      let page = read(try decode(type, answer))
      items += page.items
      guard let next = page.next else { return items }
      more = next
    }
    throw CommandFailure(.unavailable, "the cloud's list has no end", next: "check --url")
  }

  /// Downloads an answer's body into a file, which is there only as a whole.
  func download(_ path: [String], to file: URL) async throws {
    do {
      try check(try await http.download(path, to: file))
    } catch let failure as TransportFailure {
      throw Self.unreachable(failure)
    }
  }

  func decode<Value: Decodable>(_ type: Value.Type, _ data: Data) throws -> Value {
    do {
      return try JSONDecoder().decode(type, from: data)
    } catch {
      throw CommandFailure(.unavailable, "the cloud's answer can't be read", next: "check --url")
    }
  }

  private static func unreachable(_ failure: TransportFailure) -> CommandFailure {
    CommandFailure(
      .unavailable, "the cloud can't be reached: \(failure.message)",
      next: "check --url: it is the port of keepsake serve --admin-port")
  }

  private func check(_ answer: HTTPStudio.Answer) throws {
    guard answer.isCloud else {
      throw CommandFailure(.unavailable, "the answer isn't a Keepsake server's", next: "check --url")
    }
    if (200..<300).contains(answer.status) { return }
    let details: Refusal.Details
    do {
      details = try JSONDecoder().decode(Refusal.self, from: answer.body).error
    } catch {
      throw CommandFailure(.unavailable, "the cloud answered with \(answer.status)", next: "check --url")
    }
    let message = "\(details.message.dropLast()) (\(details.code))"
    switch answer.status {
    case 401, 403:
      throw CommandFailure(.permission, message, next: "keepsake admin key list shows which key has which scopes")
    case 404: throw CommandFailure(.noInput, message, next: absentAdvice)
    case 429, 503: throw CommandFailure(.temporary, message, next: "try again later")
    case 500...: throw CommandFailure(.unavailable, message, next: "the server's log says why")
    default: throw CommandFailure(.data, message)
    }
  }
}

/// A value of any type in a dictionary of JSON.
private struct AnyValue: Encodable {
  let value: any Encodable & Sendable

  func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
}
#endif
