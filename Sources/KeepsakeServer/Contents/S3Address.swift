#if Cloud
import Foundation

/// Where a bucket is, and how it is reached.
///
///     s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION&style=path&credentials=FILE&profile=NAME
struct S3Address: Hashable, Sendable {
  enum Style: String, Sendable {
    /// The bucket is the first part of the path.
    case path
    /// The bucket is the first part of the host.
    case virtual
  }
  var bucket: String
  /// Before each key, without a slash at its end; may be empty.
  var prefix: String
  var region: String
  var isSecure: Bool
  /// With the port, unless it is the usual one.
  var host: String
  var style: Style
  /// A file with credentials, as the tools of AWS have it; nil for those of the environment.
  var credentials: URL?
  /// Of that file.
  var profile = "default"

  /// - Throws: `ServerError` with `configuration`.
  init(_ text: String) throws {
    func mistake(_ what: String) -> ServerError { ContentPlace.mistake(text, what) }
    guard let parts = URLComponents(string: text), parts.scheme == "s3", let bucket = parts.host, parts.port == nil,
      parts.user == nil, parts.password == nil, parts.fragment == nil
    else { throw mistake("a bucket is named as s3://BUCKET/PREFIX") }
    self.bucket = bucket
    guard (3...63).contains(bucket.utf8.count), Self.has(bucket, only: "-."), !bucket.hasPrefix("."),
      !bucket.hasSuffix("."), !bucket.contains("..")
    else { throw mistake("a bucket's name has small letters, digits, hyphens and dots") }
    let segments = parts.path.split(separator: "/")
    guard segments.allSatisfy({ Self.has($0.lowercased(), only: "-._") && $0 != "." && $0 != ".." }),
      parts.path.utf8.count <= 256
    else { throw mistake("a prefix has letters, digits, hyphens, dots and slashes") }
    prefix = segments.joined(separator: "/")

    var options: [String: String] = [:]
    for item in parts.queryItems ?? [] {
      guard ["endpoint", "region", "style", "credentials", "profile"].contains(item.name) else {
        throw mistake("there is no option \(item.name.prefix(40))")
      }
      guard let value = item.value, !value.isEmpty, options.updateValue(value, forKey: item.name) == nil else {
        throw mistake("the option \(item.name) needs one value")
      }
    }
    guard options["region"] != nil || options["endpoint"] != nil else {
      throw mistake("it needs a region, or an endpoint")
    }
    region = options["region"] ?? "us-east-1"
    guard Self.has(region, only: "-"), region.utf8.count <= 64 else {
      throw mistake("a region has small letters, digits and hyphens")
    }
    guard let endpoint = URLComponents(string: options["endpoint"] ?? "https://s3.\(region).amazonaws.com"),
      let scheme = endpoint.scheme, let host = endpoint.host, !host.isEmpty, ["", "/"].contains(endpoint.path),
      endpoint.query == nil, endpoint.user == nil, endpoint.password == nil, ["http", "https"].contains(scheme)
    else { throw mistake("an endpoint is an address such as https://s3.example.com, without a path") }
    isSecure = scheme == "https"
    guard isSecure || ServerConfiguration.isLoopback(host) else {
      throw mistake("an endpoint that isn't on this machine needs https")
    }
    let port = endpoint.port.flatMap { $0 == (scheme == "https" ? 443 : 80) ? nil : ":\($0)" } ?? ""
    self.host = host.lowercased() + port
    guard let style = Style(rawValue: options["style"] ?? (options["endpoint"] == nil ? "virtual" : "path")) else {
      throw mistake("the style is path or virtual")
    }
    self.style = style
    if isSecure, style == .virtual, bucket.contains(".") {
      throw mistake("no certificate is good for a bucket with a dot in its name: use style=path")
    }
    if let path = options["credentials"] {
      guard path.hasPrefix("/") else { throw mistake("the file with credentials needs its whole path") }
      credentials = URL(fileURLWithPath: path)
    }
    if let profile = options["profile"] {
      guard credentials != nil else { throw mistake("a profile is in a file with credentials: name it") }
      self.profile = profile
    }
  }

  private static func has(_ text: some StringProtocol, only others: String) -> Bool {
    !text.isEmpty
      && text.unicodeScalars.allSatisfy { character in
        ("a"..."z").contains(character) || ("0"..."9").contains(character)
          || others.unicodeScalars.contains(character)
      }
  }

  /// How rows call it, whatever the way to it.
  var name: String { "s3://\(bucket)" + (prefix.isEmpty ? "" : "/\(prefix)") }

  /// The host of a request, and the path to an object, or to the bucket if it is empty.
  func target(of object: String) -> (host: String, path: String) {
    switch style {
    case .path: (host, "/\(bucket)" + (object.isEmpty ? "" : "/\(object)"))
    case .virtual: ("\(bucket).\(host)", "/\(object)")
    }
  }

  /// What a key is called in the bucket.
  func object(_ key: String) -> String { prefix.isEmpty ? key : "\(prefix)/\(key)" }
}
#endif
