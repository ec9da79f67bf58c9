#if Cloud
import Crypto
package import Foundation
package import KeepsakeReplication

/// The apps in a server's data folder: each with a name, an id that stays, and the hashes of its keys, so that a key
/// can be replaced without a device noticing. And their teams.
///
///     {"apps": [{"name": "dungeon", "id": "9f86d081884c7d65", "createdMilliseconds": 1764147600000,
///       "keys": [{"sha256": "...", "createdMilliseconds": 1764147600000}]}], "format": 1}
///
/// The keys themselves are kept nowhere. The file is replaced as a whole, and a running server notices it. It has the
/// format 2 once there is a team, which a server that knows none must not overlook.
package struct AppRegistry: Sendable {
  package struct App: Hashable, Sendable, Codable {
    package var name: String
    /// 16 hexadecimal digits. Devices' tokens and players' rows have it.
    package var id: String
    package var createdMilliseconds: Int64
    /// Nil for an app whose devices are admitted.
    package var revokedMilliseconds: Int64?
    /// The oldest first, with those that were revoked.
    package var keys: [Key]
    /// The name of its team, if it is in one.
    package var team: String?

    /// Nil for anything else.
    var appID: AppID? { AppID(text: id) }
  }
  package struct Key: Hashable, Sendable, Codable {
    package var sha256: ContentHash
    package var createdMilliseconds: Int64
    package var revokedMilliseconds: Int64?

    /// The first 8 digits of its hash, by which it is listed and revoked.
    package var id: String { String("\(sha256)".prefix(8)) }
  }
  private struct Contents: Codable {
    var format = 1
    var apps: [App] = []
    var teams: [Team]?
  }

  static let fileName = "apps"
  /// The newest one: without teams, the first is written.
  private static let format = 2
  private static let keyLength = 28
  static let names = 1...64
  /// More than any studio has games. Each registration compares with all of their keys.
  private static let maximumApps = 1_000
  /// Accepted ones of an app.
  private static let maximumKeys = 16
  /// Of an app, with those that were revoked: one for each week of ten years.
  private static let maximumKeysEver = 520

  let file: URL
  let clock: @Sendable () -> Int64

  /// - Parameter data: The data folder of a server, which must exist.
  package init(data: URL) throws { try self.init(data: data, clock: ServerConfiguration.systemClock) }

  init(data: URL, clock: @escaping @Sendable () -> Int64) throws {
    _ = try DataFolder.existingDatabase(in: data)
    self.init(file: data.appendingPathComponent(Self.fileName), clock: clock)
  }

  init(file: URL, clock: @escaping @Sendable () -> Int64 = ServerConfiguration.systemClock) {
    (self.file, self.clock) = (file, clock)
  }

  /// All apps, revoked ones too, the oldest first.
  ///
  /// - Throws: A `ServerError` with `damaged` if the file can't be understood, or `newerData`.
  package func list() throws -> [App] { try read().apps }

  /// All teams, the oldest first.
  ///
  /// - Throws: As `list`.
  package func teams() throws -> [Team] { try read().teams ?? [] }

  /// Both, of one moment.
  func all() throws -> (apps: [App], teams: [Team]) {
    let contents = try read()
    return (contents.apps, contents.teams ?? [])
  }

  /// Creates an app.
  ///
  /// - Parameters:
  ///   - name: 1 to 64 visible ASCII characters. No two apps have the same, revoked ones too.
  ///   - key: A key with which installs have registered so far: the app's id is that of this key, so that they go on.
  ///     Nil for a new key.
  /// - Returns: The new key, which nobody can read again; nil if there was one.
  /// - Throws: A `ServerError` with `configuration` for a name or a key that isn't allowed or that an app has.
  package func create(_ name: String, adopting key: String? = nil) throws -> (key: String?, app: App) {
    try Self.check(name, "An app's")
    if let key, !AppKeys.isAcceptable(key) { throw AppKeys.unacceptable }
    let made = key == nil ? Self.newKey() : nil
    let text = key ?? made ?? ""
    var source = SystemRandomNumberGenerator()
    let id = key.map(AppID.init(ofKey:)) ?? AppID(word: source.next())
    let now = clock()
    let first = Key(sha256: Self.digest(text), createdMilliseconds: now)
    let app = App(name: name, id: id.text, createdMilliseconds: now, keys: [first])
    try changeApps { apps in
      guard !apps.contains(where: { $0.name == name }) else {
        throw ServerError(.configuration, "There is an app named \(name), or was one: use another name.")
      }
      guard !apps.contains(where: { app in app.id == id.text || app.keys.contains { $0.sha256 == first.sha256 } })
      else { throw ServerError(.configuration, "This key is that of another app already.") }
      guard apps.count < Self.maximumApps else {
        throw ServerError(.configuration, "There are \(Self.maximumApps) apps already.")
      }
      apps.append(app)
    }
    return (made, app)
  }

  /// Gives an app one more key. Those from before stay accepted until they are revoked, since installs have them.
  ///
  /// - Returns: The key, which nobody can read again.
  /// - Throws: A `ServerError` if no app that is admitted has that name, or it has 16 keys that are accepted.
  package func rotate(_ name: String) throws -> String {
    let key = Self.newKey()
    try change(name) { app in
      guard app.keys.count(where: { $0.revokedMilliseconds == nil }) < Self.maximumKeys else {
        throw ServerError(.configuration, "The app \(name) has \(Self.maximumKeys) keys: revoke one first.")
      }
      // The oldest of those that nobody can use is forgotten, and can't renew a token any more.
      let oldest = app.keys.firstIndex { $0.revokedMilliseconds != nil }
      if app.keys.count >= Self.maximumKeysEver, let oldest { app.keys.remove(at: oldest) }
      app.keys.append(Key(sha256: Self.digest(key), createdMilliseconds: clock()))
    }
    return key
  }

  /// Revokes one of an app's keys for good: no install registers with it any more. Devices that have registered go on,
  /// also those whose game still has the key.
  ///
  /// - Parameter key: The key's id (``Key/id``).
  /// - Throws: A `ServerError` if there is no such app or key, or it is the last one: revoke the app then.
  package func revoke(_ name: String, key: String) throws {
    try change(name) { app in
      let accepted = app.keys.indices.filter { app.keys[$0].revokedMilliseconds == nil }
      guard let index = accepted.first(where: { app.keys[$0].id == key.lowercased() }) else {
        throw ServerError(.missing, "The app \(name) has no key \(key.prefix(Self.names.upperBound)).")
      }
      guard accepted.count > 1 else {
        throw ServerError(
          .configuration, "It is the only key of \(name): rotate it first, or revoke the app with all its devices.")
      }
      app.keys[index].revokedMilliseconds = clock()
    }
  }

  /// Revokes an app for good, with all its keys and the tokens of all its devices. Its players' data stay.
  ///
  /// - Throws: A `ServerError` if no app that is admitted has that name.
  package func revoke(_ name: String) throws { try change(name) { $0.revokedMilliseconds = clock() } }

  // MARK: The file

  static func check(_ name: String, _ whose: String) throws {
    guard names.contains(name.utf8.count), name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw ServerError(
        .configuration, "\(whose) name must have 1 to \(names.upperBound) visible ASCII characters and no spaces.")
    }
  }

  private static func newKey() -> String {
    var source = SystemRandomNumberGenerator()
    return "app_" + ReadableCode.make(length: keyLength, using: &source).lowercased()
  }

  private static func digest(_ key: String) -> ContentHash { ContentHash(of: Data(key.utf8)) }

  private func read() throws -> Contents {
    guard let bytes = try PrivateFile.read(file) else { return Contents() }
    func damaged(_ cause: (any Error)?) -> ServerError {
      ServerError(.damaged, "\(file.path) can't be read: restore it from a backup.", cause: cause)
    }
    let format: Int
    let contents: Contents
    do {
      format = try JSONDecoder().decode([String: IgnoredValue].self, from: bytes)["format"]?.number ?? 0
      guard format <= Self.format else {
        throw ServerError(
          .newerData, "\(file.path) was written by a newer version of the server; run that version or a newer one.")
      }
      contents = try JSONDecoder().decode(Contents.self, from: bytes)
    } catch let error as ServerError {
      throw error
    } catch {
      throw damaged(error)
    }
    guard (1...Self.format).contains(format), contents.apps.allSatisfy({ $0.appID != nil }),
      (contents.teams ?? []).allSatisfy(\.isWhole)
    else { throw damaged(nil) }
    return contents
  }

  private func change(_ name: String, _ body: (inout App) throws -> Void) throws {
    try changeApps { apps in
      guard let index = apps.firstIndex(where: { $0.name == name && $0.revokedMilliseconds == nil }) else {
        throw ServerError(.missing, "There is no app named \(name.prefix(Self.names.upperBound)).")
      }
      try body(&apps[index])
    }
  }

  private func changeApps(_ body: (inout [App]) throws -> Void) throws {
    try change { apps, _ in try body(&apps) }
  }

  /// Changes the file, while no other command does.
  func change(_ body: (_ apps: inout [App], _ teams: inout [Team]) throws -> Void) throws {
    try PrivateFile.locking(file) {
      var contents = try read()
      var teams = contents.teams ?? []
      try body(&contents.apps, &teams)
      contents.teams = teams.isEmpty ? nil : teams
      contents.format = teams.isEmpty ? 1 : Self.format
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
      try PrivateFile.write(try encoder.encode(contents), to: file)
    }
  }
}

/// A value of which only a whole number matters.
private struct IgnoredValue: Decodable {
  var number: Int?

  init(from decoder: any Decoder) throws { number = try? decoder.singleValueContainer().decode(Int.self) }
}
#endif
