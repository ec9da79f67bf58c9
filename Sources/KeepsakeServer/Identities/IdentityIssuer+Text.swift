#if Cloud
import Foundation

/// Issuers as an operator writes them: a name, and then `key=value` for each further thing.
///
///     apple audience=com.example.garden nonce=required
///     login preset=custom issuer=https://login.example.com audience=garden algorithm=ES256 keys=/etc/login.pem
extension IdentityIssuer {
  /// A well-known issuer, of which all but the game's own identifiers is known.
  package enum Preset: String, CaseIterable, Sendable {
    case apple
    case google
    case firebase
    case microsoft
    /// A studio's own login, or any other issuer.
    case custom
  }
  /// The tenant of Microsoft's personal accounts, which players of games have.
  private static let consumers = "9188040d-6c67-4c5b-b112-36a304b66dad"

  /// What was written, by its keys.
  private struct Words {
    var name: String
    var values: [String: [String]] = [:]

    init(_ text: String) throws {
      let words = text.split(separator: " ").map(String.init)
      guard let name = words.first, !name.contains("=") else {
        throw IdentityIssuer.mistake(text, "it has to begin with a name")
      }
      self.name = name
      for word in words.dropFirst() {
        let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
        guard parts.count == 2 else {
          throw IdentityIssuer.mistake(name, "\"\(word.prefix(60))\" has to be a key, =, and a value")
        }
        values[parts[0], default: []].append(parts[1])
      }
    }

    mutating func take(_ key: String) throws -> String? {
      let all = takeAll(key)
      guard all.count <= 1 else { throw IdentityIssuer.mistake(name, "\(key) may be given once") }
      return all.first
    }

    mutating func takeAll(_ key: String) -> [String] { values.removeValue(forKey: key) ?? [] }

    mutating func need(_ key: String) throws -> String {
      guard let value = try take(key) else { throw IdentityIssuer.mistake(name, "\(key) is missing") }
      return value
    }

    mutating func number(_ key: String) throws -> Int? {
      try take(key).map { text in
        guard let number = Int(text) else { throw IdentityIssuer.mistake(name, "\(key) takes a number of seconds") }
        return number
      }
    }

    mutating func choice(_ key: String, _ yes: String, _ no: String) throws -> Bool? {
      try take(key).map { text in
        guard text == yes || text == no else { throw IdentityIssuer.mistake(name, "\(key) takes \(yes) or \(no)") }
        return text == yes
      }
    }
  }

  /// Reads an issuer as an operator writes it.
  ///
  /// - Throws: A `ServerError` with the code `configuration` that says what is wrong.
  package init(_ text: String) throws {
    var words = try Words(text)
    let name = words.name
    guard Self.isName(name) else { throw Self.mistake(name, Self.nameRule) }
    let preset = try words.take("preset") ?? (Preset(rawValue: name) == nil ? Preset.custom.rawValue : name)
    guard let preset = Preset(rawValue: preset) else {
      let all = Preset.allCases.map(\.rawValue).joined(separator: ", ")
      throw Self.mistake(name, "there is no preset \(preset.prefix(60)); those known are \(all)")
    }
    var issuer = try Self.issuer(preset, &words)
    issuer.audiences.formUnion(words.takeAll("audience"))
    if let keys = try words.take("keys") { issuer.keys = try Self.keys(keys, of: name) }
    if let seconds = try words.number("skew") { issuer.skewSeconds = seconds }
    if let seconds = try words.number("max-age") { issuer.maximumAgeSeconds = seconds }
    issuer.requiresNonce = try words.choice("nonce", "required", "none") ?? false
    issuer.isSingleUse = try words.choice("single-use", "yes", "no") ?? false
    if let other = words.values.keys.min() {
      throw Self.mistake(name, "\(other.prefix(60)) is no key of the preset \(preset.rawValue)")
    }
    try issuer.check()
    self = issuer
  }

  private static func issuer(_ preset: Preset, _ words: inout Words) throws -> IdentityIssuer {
    func known(_ issuers: [String], keys: String) throws -> IdentityIssuer {
      IdentityIssuer(
        name: words.name, issuers: issuers, audiences: [], algorithm: .rs256,
        keys: try Self.keys(keys, of: words.name))
    }
    switch preset {
    case .apple: return try known(["https://appleid.apple.com"], keys: "https://appleid.apple.com/auth/keys")
    case .google:
      return try known(
        ["https://accounts.google.com", "accounts.google.com"], keys: "https://www.googleapis.com/oauth2/v3/certs")
    case .firebase:
      let project = try words.need("project")
      var issuer = try known(
        ["https://securetoken.google.com/\(project)"],
        keys: "https://www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com")
      issuer.audiences = [project]
      return issuer
    case .microsoft:
      let tenant = try words.need("tenant")
      let id = tenant == "consumers" ? consumers : tenant.lowercased()
      guard UUID(uuidString: id) != nil else {
        throw mistake(words.name, "tenant takes the id of a tenant, or consumers")
      }
      let address = "https://login.microsoftonline.com/\(id)"
      return try known(["\(address)/v2.0"], keys: "\(address)/discovery/v2.0/keys")
    case .custom:
      let algorithm = try words.need("algorithm")
      guard let algorithm = TokenAlgorithm(rawValue: algorithm) else {
        let all = TokenAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")
        throw mistake(words.name, "algorithm takes one of \(all)")
      }
      return IdentityIssuer(
        name: words.name, issuers: words.takeAll("issuer"), audiences: [], algorithm: algorithm,
        keys: try keys(try words.need("keys"), of: words.name))
    }
  }

  private static func keys(_ text: String, of name: String) throws -> Keys {
    guard text.contains("://") else { return .file(URL(fileURLWithPath: text)) }
    guard let url = URL(string: text) else { throw mistake(name, "the address of its keys can't be read") }
    return url.isFileURL ? .file(url) : .address(url)
  }
}
#endif
