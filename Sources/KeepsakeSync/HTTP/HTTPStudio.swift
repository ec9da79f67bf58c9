package import Foundation
package import KeepsakeReplication

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Asks a Keepsake server's port for the studio, with an admin key.
package struct HTTPStudio: Sendable {
  private let url: URL
  private let key: String

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
    request.httpBody = body
    if body != nil { request.setValue("application/json", forHTTPHeaderField: "Content-Type") }
    do {
      let (data, response) = try await URLSession.shared.data(for: request)
      return Self.answer(response, data)
    } catch {
      throw Self.failure(error)
    }
  }

  /// Downloads a response into a file, which is there only if it is a success, and as a whole.
  ///
  /// - Parameters:
  ///   - path: As of `send`.
  ///   - file: Where it is put, readable by its owner only. What is there is replaced.
  /// - Returns: The answer; without its body, if that is in the file.
  /// - Throws: A `TransportFailure` if the server can't be reached; the system's error if the file can't be written.
  package func download(_ path: [String], to file: URL) async throws -> Answer {
    let place: URL
    let response: URLResponse
    do {
      (place, response) = try await URLSession.shared.download(for: request("GET", path))
    } catch {
      throw Self.failure(error)
    }
    let manager = FileManager.default
    let answer = Self.answer(response, Data())
    guard answer.status == 200, answer.isCloud else {
      let body = try Data(contentsOf: place)
      try manager.removeItem(at: place)
      return Answer(status: answer.status, isCloud: answer.isCloud, body: body)
    }
    try manager.setAttributes([.posixPermissions: 0o600], ofItemAtPath: place.path)
    if manager.fileExists(atPath: file.path) { try manager.removeItem(at: file) }
    try manager.moveItem(at: place, to: file)
    return answer
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

  private static func answer(_ response: URLResponse, _ body: Data) -> Answer {
    let response = response as? HTTPURLResponse
    return Answer(
      status: response?.statusCode ?? 0,
      isCloud: response?.value(forHTTPHeaderField: "Keepsake-Protocol") != nil, body: body)
  }

  private static func failure(_ error: any Error) -> TransportFailure {
    TransportFailure(.unreachable, error.localizedDescription)
  }
}
