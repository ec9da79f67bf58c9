#if Cloud
package import Foundation

/// Where a studio's backend is told what happens, and of what.
///
/// As an operator writes it: a name, and then `key=value` for each further thing.
///
///     shop url=https://shop.example.com/keepsake secrets=/etc/keepsake/shop kind=purchaseSettled
///
/// The address is the operator's own choice, so it may be a private one.
package struct WebhookEndpoint: Hashable, Sendable {
  /// 1 to 40 lowercase letters, digits and hyphens. Events that wait belong to it.
  package var name: String
  /// `https://`, or `http://` to this machine.
  package var url: URL
  /// A file that only its owner may read, with one or two secrets, each on a line. Read again when it changes.
  package var secrets: URL
  package var kinds: Set<WebhookKind>

  package init(name: String, url: URL, secrets: URL, kinds: Set<WebhookKind> = Set(WebhookKind.allCases)) {
    (self.name, self.url, self.secrets, self.kinds) = (name, url, secrets, kinds)
  }

  /// Reads an endpoint as an operator writes it.
  ///
  /// - Throws: A `ServerError` with the code `configuration` that says what is wrong.
  package init(_ text: String) throws {
    let words = text.split(separator: " ").map(String.init)
    guard let name = words.first, !name.contains("=") else {
      throw Self.mistake(text, "it has to begin with a name")
    }
    var (url, secrets, kinds): (URL?, URL?, Set<WebhookKind>) = (nil, nil, [])
    for word in words.dropFirst() {
      let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
      guard parts.count == 2 else {
        throw Self.mistake(name, "\"\(word.prefix(60))\" has to be a key, =, and a value")
      }
      switch parts[0] {
      case "url" where url == nil:
        guard let address = URL(string: parts[1]) else { throw Self.mistake(name, "its url can't be read") }
        url = address
      case "secrets" where secrets == nil: secrets = URL(fileURLWithPath: parts[1])
      case "kind":
        guard let kind = WebhookKind(rawValue: parts[1]) else {
          let all = WebhookKind.allCases.map(\.rawValue).joined(separator: ", ")
          throw Self.mistake(name, "there is no kind \(parts[1].prefix(60)); those known are \(all)")
        }
        kinds.insert(kind)
      case "url", "secrets": throw Self.mistake(name, "\(parts[0]) may be given once")
      default: throw Self.mistake(name, "\(parts[0].prefix(60)) is no key of a webhook")
      }
    }
    guard let url else { throw Self.mistake(name, "url is missing") }
    guard let secrets else { throw Self.mistake(name, "secrets is missing") }
    self.init(name: name, url: url, secrets: secrets, kinds: kinds.isEmpty ? Set(WebhookKind.allCases) : kinds)
    try check()
  }

  /// Whether a webhook may be called so.
  package static func isName(_ text: String) -> Bool { IdentityIssuer.isName(text) }

  /// Throws a `ServerError` with the code `configuration` if nothing can be sent like this.
  func check() throws {
    guard Self.isName(name) else { throw Self.mistake(name, IdentityIssuer.nameRule) }
    let host = url.host() ?? ""
    let isLocal = url.scheme == "http" && ServerConfiguration.isLoopback(host)
    guard !host.isEmpty, url.scheme == "https" || isLocal else {
      throw Self.mistake(name, "its url has to begin with https://, or lead to this machine")
    }
    guard url.user() == nil, url.fragment() == nil else {
      throw Self.mistake(name, "its url can't have a user or a fragment")
    }
    guard !kinds.isEmpty else { throw Self.mistake(name, "it needs a kind of events") }
  }

  static func mistake(_ name: String, _ what: String) -> ServerError {
    ServerError(.configuration, "The webhook \"\(name.prefix(60))\" can't be used: \(what).")
  }
}
#endif
