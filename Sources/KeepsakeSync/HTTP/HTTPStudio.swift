package import Foundation
import KeepsakePlatform
package import KeepsakeReplication
import Synchronization

/// Asks a Keepsake server's port for the studio, with an admin key.
package struct HTTPStudio: Sendable {
  /// The longest silence: a player that is deleted from a large database takes a while.
  private static let idleSeconds = 120.0

  private let url: URL
  private let key: String
  private let session = HTTPSession(idleSeconds: Self.idleSeconds)

  package init(url: URL, key: String) {
    self.url = url
    self.key = key
  }

  /// What the server has answered, whether it is a success or not.
  package struct Answer: Sendable {
    package var status: Int
    /// Whether the answer is a Keepsake server's.
    package var isCloud: Bool
    package var body: Data
  }

  /// Sends a request, and collects its response.
  ///
  /// - Parameters:
  ///   - path: The words between the slashes, below `/admin/v1`.
  ///   - query: The parameters behind the path.
  ///   - body: JSON; nil for none.
  /// - Throws: A `TransportFailure` if the server can't be reached.
  package func send(
    _ method: String, _ path: [String], query: [String: String] = [:], body: Data? = nil
  ) async throws(TransportFailure) -> Answer {
    var request = request(method, path, query: query)
    if body != nil { request.setValue("application/json", forHTTPHeaderField: "Content-Type") }
    let answer = try await session.send(request, body: body, limit: .max)
    return Self.answer(answer.response, answer.body)
  }

  /// Downloads a response into a file, which is there only if it is a success, and as a whole.
  ///
  /// - Parameters:
  ///   - path: As of `send`.
  ///   - file: Where it is put, readable by its owner only. What is there is replaced.
  /// - Returns: The answer; without its body, if that is in the file.
  /// - Throws: A `TransportFailure` if the server can't be reached; the system's error if the file can't be written.
  package func download(_ path: [String], to file: URL) async throws -> Answer {
    let sink = try DownloadSink(file)
    do {
      try await session.stream(request("GET", path), accept: { sink.head = $0 }, part: { sink.write($0) })
      let body = try sink.end()
      guard let response = sink.head else { throw TransportFailure(.interrupted, "The response has no headers.") }
      if !Self.isSuccess(response) { try FileManager.default.removeItem(at: file) }
      return Self.answer(response, body)
    } catch {
      // Whatever went wrong is what counts; the caller looks for the file.
      try? FileManager.default.removeItem(at: file)
      throw error
    }
  }

  private func request(_ method: String, _ path: [String], query: [String: String] = [:]) -> URLRequest {
    var place = path.reduce(url.appendingPathComponent("admin/v1")) { $0.appendingPathComponent($1) }
    if !query.isEmpty {
      // A slot's name may have any characters.
      place.append(queryItems: query.sorted { $0.key < $1.key }.map { URLQueryItem(name: $0.key, value: $0.value) })
    }
    var request = URLRequest(url: place)
    request.httpMethod = method
    request.setValue("Bearer " + key, forHTTPHeaderField: "Authorization")
    return request
  }

  private static func answer(_ response: HTTPURLResponse, _ body: Data) -> Answer {
    Answer(status: response.statusCode, isCloud: isCloud(response), body: body)
  }

  private static func isCloud(_ response: HTTPURLResponse) -> Bool {
    response.value(forHTTPHeaderField: "Keepsake-Protocol") != nil
  }

  fileprivate static func isSuccess(_ response: HTTPURLResponse) -> Bool {
    response.statusCode == 200 && isCloud(response)
  }
}

/// Where a download goes: a success into the file, anything else into memory.
private final class DownloadSink: Sendable {
  private struct State {
    var head: HTTPURLResponse?
    var body = Data()
    var failure: (any Error)?
  }
  /// Of a response that isn't a success: errors are shorter.
  private static let maximumBodyBytes = 64 * 1024

  private let file: FileHandle
  private let state = Mutex(State())

  init(_ url: URL) throws {
    try Data().write(to: url)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: url.path)
    file = try FileHandle(forWritingTo: url)
  }

  var head: HTTPURLResponse? {
    get { state.withLock { $0.head } }
    set { state.withLock { $0.head = newValue } }
  }

  func write(_ part: Data) {
    state.withLock { state in
      guard let head = state.head, state.failure == nil else { return }
      guard HTTPStudio.isSuccess(head) else {
        return state.body.append(part.prefix(Self.maximumBodyBytes - state.body.count))
      }
      do { try file.write(contentsOf: part) } catch { state.failure = error }
    }
  }

  /// Closes the file, and returns the body of a response that isn't in it.
  func end() throws -> Data {
    try file.close()
    return try state.withLock { state in
      if let failure = state.failure { throw failure }
      return state.body
    }
  }
}
