#if Cloud
import Foundation
import Logging

/// With what requests to S3 are signed. Never printed.
struct S3Credentials: Hashable, Sendable, CustomStringConvertible {
  var accessKey: String
  var secretKey: String
  var sessionToken: String?

  var description: String { "credentials of \(accessKey)" }

  /// - Throws: `ServerError` with `configuration` if a part is missing, or can't be one.
  init(accessKey: String?, secretKey: String?, sessionToken: String?, from source: String) throws {
    guard let accessKey, let secretKey else {
      throw ServerError(
        .configuration, "The credentials for the bucket of contents are missing, or a part of them: see \(source).")
    }
    for part in [accessKey, secretKey, sessionToken].compactMap(\.self)
    where part.isEmpty || !part.utf8.allSatisfy({ (33...126).contains($0) }) {
      throw ServerError(.configuration, "The credentials in \(source) have a character that none have, or are empty.")
    }
    (self.accessKey, self.secretKey, self.sessionToken) = (accessKey, secretKey, sessionToken)
  }

  /// Those of the environment.
  init(environment: [String: String]) throws {
    try self.init(
      accessKey: environment["AWS_ACCESS_KEY_ID"], secretKey: environment["AWS_SECRET_ACCESS_KEY"],
      sessionToken: environment["AWS_SESSION_TOKEN"].flatMap { $0.isEmpty ? nil : $0 },
      from: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment")
  }

  /// Those of a profile in a file as the tools of AWS write it.
  init(file: URL, profile: String) throws {
    let text: String
    do {
      text = try String(contentsOf: file, encoding: .utf8)
    } catch {
      throw ServerError(.configuration, "The credentials in \(file.path) can't be read.", cause: error)
    }
    var values: [String: String] = [:]
    var isHere = false
    for line in text.split(whereSeparator: \.isNewline).map({ $0.trimmingCharacters(in: .whitespaces) }) {
      if line.isEmpty || line.hasPrefix("#") || line.hasPrefix(";") { continue }
      if line.hasPrefix("[") {
        isHere = line.dropFirst().prefix { $0 != "]" }.trimmingCharacters(in: .whitespaces) == profile
      } else if isHere, let equals = line.firstIndex(of: "=") {
        let name = line[..<equals].trimmingCharacters(in: .whitespaces).lowercased()
        values[name] = line[line.index(after: equals)...].trimmingCharacters(in: .whitespaces)
      }
    }
    try self.init(
      accessKey: values["aws_access_key_id"], secretKey: values["aws_secret_access_key"],
      sessionToken: values["aws_session_token"], from: "the profile \(profile) in \(file.path)")
  }

  /// Returns what finds those of an address, anew whenever its file has changed.
  static func source(
    of address: S3Address, logger: Logger,
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) throws -> @Sendable () -> S3Credentials {
    guard let file = address.credentials else {
      let credentials = try S3Credentials(environment: environment)
      return { credentials }
    }
    let profile = address.profile
    let watched = try WatchedFiles([file], what: "credentials of the bucket of contents", logger: logger) {
      try S3Credentials(file: file, profile: profile)
    }
    return { watched.value }
  }
}
#endif
