#if Cloud
package import Foundation
import KeepsakePlatform

/// Gets the keys of issuers from their addresses. Replaced by tests.
package protocol KeySource: Sendable {
  /// Returns the bytes at an address. The server asks at most once a minute for each issuer, ignores what takes longer
  /// than ten seconds, and cancels its task.
  ///
  /// - Parameters:
  ///   - address: Where an issuer's keys are.
  ///   - limit: The most bytes to return.
  /// - Throws: Any error if they can't be had, or if there are more.
  func keys(at address: URL, limit: Int) async throws -> Data
}

/// Gets them by HTTPS. Follows no redirection: an issuer's address is written down, and nothing but it is asked.
package struct HTTPKeySource: KeySource {
  package init() {}

  package func keys(at address: URL, limit: Int) async throws -> Data {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = Double(ServerLimits.identitySeconds)
    configuration.timeoutIntervalForResource = Double(ServerLimits.identitySeconds)
    configuration.httpCookieStorage = nil
    configuration.urlCache = nil
    let download = KeyDownload(limit: limit)
    let session = URLSession(configuration: configuration, delegate: download, delegateQueue: nil)
    // A session holds its delegate until then.
    defer { session.finishTasksAndInvalidate() }
    var request = URLRequest(url: address)
    request.setValue("application/json", forHTTPHeaderField: "Accept")
    let task = session.dataTask(with: request)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        download.start(continuation)
        task.resume()
      }
    } onCancel: {
      task.cancel()
    }
  }
}
#endif
