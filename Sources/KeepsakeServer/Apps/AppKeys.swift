#if Cloud
import Crypto
import Foundation
import KeepsakeReplication
import Logging

/// Identifies an app: by a hash of its key, which doesn't reveal the key, or by what its registry drew.
struct AppID: Hashable, Sendable {
  static let byteCount = 8
  let bytes: Data

  init(ofKey key: String) { bytes = Data(SHA256.hash(data: Data(key.utf8)).prefix(Self.byteCount)) }

  init(bytes: Data) { self.bytes = bytes }

  /// Nil for a text that isn't as `text` is.
  init?(text: String) {
    guard let word = UInt64(text, radix: 16) else { return nil }
    self.init(word: word)
    guard self.text == text else { return nil }
  }

  init(word: UInt64) { bytes = withUnsafeBytes(of: word.bigEndian) { Data($0) } }

  /// 16 hexadecimal digits.
  var text: String { bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() }
}

/// The keys with which installs may register. A key that isn't among them any more is revoked, and with it the tokens
/// of the devices that registered with it.
///
/// Those in a file, one on each line, may change while the server runs; a line that begins with `#` is a comment. So
/// may the apps of a registry, whose keys are revoked one by one. What the registry has revoked is accepted from
/// nowhere else. Each of the two files is read by itself: one that can't be read any more doesn't hide what changes in
/// the other.
struct AppKeys: Sendable {
  /// Those of the settings: each is an app.
  private struct Settings: Sendable {
    var keys: [String]
    var digests: [ContentHash: AppID] = [:]
    var apps: Set<AppID> = []

    init(_ keys: [String]) {
      self.keys = keys
      for key in keys {
        digests[ContentHash(of: Data(key.utf8))] = AppID(ofKey: key)
        apps.insert(AppID(ofKey: key))
      }
    }
  }
  private struct Registered: Sendable {
    struct Key: Sendable {
      var app: AppID
      var isRevoked: Bool
    }
    var digests: [ContentHash: Key] = [:]
    var apps: Set<AppID> = []
    var revoked: Set<AppID> = []
    var grants = SharedGrants()

    init(_ apps: [AppRegistry.App], _ teams: [AppRegistry.Team]) {
      for app in apps {
        guard let id = app.appID else { continue }
        if app.revokedMilliseconds == nil { self.apps.insert(id) } else { revoked.insert(id) }
        for key in app.keys { digests[key.sha256] = Key(app: id, isRevoked: key.revokedMilliseconds != nil) }
      }
      grants = SharedGrants(of: teams)
    }
  }
  private let settings: WatchedFiles<Settings>
  private let registered: WatchedFiles<Registered>

  /// - Parameters:
  ///   - keys: Those that stay as long as the server runs.
  ///   - file: Where further keys are; nil for none.
  ///   - registry: Where apps with keys of their own are; nil for none.
  /// - Throws: A `ServerError` if a key isn't acceptable, there is none, or a file can't be read.
  init(
    _ keys: [String], file: URL? = nil, registry: AppRegistry? = nil,
    logger: Logger = Logger(label: "keepsake.server")
  ) throws {
    let hasRegistered = try registry.map { try !$0.list().isEmpty } ?? false
    settings = try WatchedFiles([file].compactMap(\.self), what: "app keys", logger: logger) {
      let all = try keys + (file.map(Self.read) ?? [])
      guard all.allSatisfy(Self.isAcceptable) else { throw Self.unacceptable }
      guard !all.isEmpty || hasRegistered else {
        throw ServerError(.configuration, "\(file?.path ?? "The configuration") has no app key.")
      }
      return Settings(all)
    }
    registered = try WatchedFiles([registry?.file].compactMap(\.self), what: "apps", logger: logger) {
      let all = try registry?.all()
      return Registered(all?.apps ?? [], all?.teams ?? [])
    }
  }

  private static func read(_ file: URL) throws -> [String] {
    guard let bytes = try PrivateFile.read(file) else {
      throw ServerError(.missing, "There is no file \(file.path) with app keys.")
    }
    return String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
      .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty && !$0.hasPrefix("#") }
  }

  static func isAcceptable(_ key: String) -> Bool {
    (8...200).contains(key.utf8.count) && key.utf8.allSatisfy { (0x21...0x7E).contains($0) }
  }

  static let unacceptable = ServerError(
    .configuration, "An app key must have 8 to 200 visible ASCII characters and no spaces; one of those given doesn't.")

  /// The keys themselves, without those of which only a hash is kept.
  var keys: [String] { settings.value.keys }

  /// Reads the files again, whether they look changed or not.
  func reload() {
    settings.reload()
    registered.reload()
  }

  /// Returns the app of a known key. A wrong key is looked up by its hash, so that the time reveals nothing about the
  /// keys that exist.
  ///
  /// - Parameter device: The app of a device that asks for a new token: a key of that app that was revoked is good for
  ///   this, because the device's game may not have been updated. Nil for a device that registers or joins.
  func app(forKey key: String, renewing device: AppID? = nil) -> AppID? {
    let digest = ContentHash(of: Data(key.utf8))
    let registered = registered.value
    guard let known = registered.digests[digest] else {
      return settings.value.digests[digest].flatMap { registered.revoked.contains($0) ? nil : $0 }
    }
    return registered.apps.contains(known.app) && (!known.isRevoked || known.app == device) ? known.app : nil
  }

  /// Returns whether devices of an app are admitted, or those of a shared container with this grant.
  func accepts(_ app: AppID) -> Bool { refusal(of: app) == nil }

  /// Why devices of an app aren't admitted.
  enum Refusal: Hashable, Sendable {
    case appRevoked
    /// The app may not use the shared container any more.
    case notEntitled
  }

  /// Returns why devices of an app aren't admitted, or those of a shared container with this grant; nil if they are.
  func refusal(of app: AppID) -> Refusal? {
    let registered = registered.value
    func isAdmitted(_ app: AppID) -> Bool {
      !registered.revoked.contains(app) && (registered.apps.contains(app) || settings.value.apps.contains(app))
    }
    guard let grant = registered.grants[app] else { return isAdmitted(app) ? nil : .appRevoked }
    guard isAdmitted(grant.app) else { return .appRevoked }
    return grant.access == nil ? .notEntitled : nil
  }

  /// Returns whether what an app has given out, tokens and recovery codes, is good for another one: if its key isn't
  /// among the settings any more, since a game's update then has another key. What was revoked by name stays so. What
  /// is of a shared container has no app at all: the storage refuses to make a game's own of it.
  func lets(_ former: AppID, become app: AppID) -> Bool {
    former == app || !accepts(former) && !registered.value.revoked.contains(former)
  }

  // MARK: Shared containers

  /// Returns by what right an app uses the shared container that it knows by this name; nil if it may not, whether
  /// there is one or not.
  func grant(of app: AppID, to container: String) -> SharedGrant? {
    let grant = registered.value.grants.grant(of: app, to: container)
    return grant.flatMap { $0.access != nil && accepts($0.app) ? $0 : nil }
  }

  /// Returns the right that a device's token has in the place of an app; nil for an app.
  func grant(_ app: AppID) -> SharedGrant? { registered.value.grants[app] }

  /// What a device may do whose token has this.
  func access(of app: AppID) -> ContainerAccess { grant(app)?.access ?? .readWrite }

  /// Returns by which name games ask for a shared container; nil if there is none with this id.
  func name(of share: AppID) -> String? { registered.value.grants.name(of: share) }

  /// Returns what codes and identities of a device are valid in: its app, or its shared container.
  func scope(of app: AppID) -> AppID { grant(app)?.share ?? app }
}
#endif
