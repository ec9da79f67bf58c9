import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The location of an account's data, among those of a game's other accounts.
///
/// The guest's data is that of the profile `default`: what was played before a game had accounts belongs to the guest.
/// The others have folders whose names reveal nothing about the account, and which no profile can have as its name.
struct AccountLocation: Sendable {
  /// The name of the folder that holds all accounts but the guest's.
  static let folderName = ".accounts"
  /// The file that contains the account's name.
  private static let fileName = "account.json"
  /// 128 bits, so that no two accounts share a folder.
  private static let digits = 32
  private static let maximumFileBytes = 16 * 1024

  private struct Name: Codable {
    var format = 1
    var account: String
  }

  /// The folder of the game's data.
  let base: URL
  let account: Account

  init(_ account: Account, in base: URL) throws {
    if case .named(let name) = account {
      let rule = NameRule(
        "an account's name", maximumBytes: Account.maximumNameBytes, controlCharacters: .allowed)
      if let objection = rule.objection(to: name) { throw GameDataError(.misuse, objection) }
    }
    (self.base, self.account) = (base, account)
  }

  /// Identifies the account among the others; the same on every device.
  var name: String {
    switch account {
    case .guest: Account.guestProfile
    case .named(let name): "\(Self.folderName)/\(Self.folder(for: name))"
    }
  }

  var url: URL {
    switch account {
    case .guest: base.appendingPathComponent(Account.guestProfile, isDirectory: true)
    case .named(let name): Self.accounts(in: base).appendingPathComponent(Self.folder(for: name), isDirectory: true)
    }
  }

  /// The profile that a seal binds the data to.
  var sealName: String { url.lastPathComponent }

  static func accounts(in base: URL) -> URL { base.appendingPathComponent(folderName, isDirectory: true) }

  private static func folder(for name: String) -> String {
    String(ContentHash(of: Data("keepsake account \(name.canonical)".utf8)).description.prefix(digits))
  }

  /// Records whose store this is, for lists of accounts. The caller must have the store open.
  func recordName(in folder: URL) throws {
    guard case .named(let name) = account else { return }
    let file = folder.appendingPathComponent(Self.fileName)
    if try Self.name(in: file) == name { return }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
    try AtomicFile.write(encoder.encode(Name(account: name)), to: file, access: .ownerOnly)
  }

  private static func name(in file: URL) throws -> String? {
    guard let bytes = try AtomicFile.read(file, maximumBytes: maximumFileBytes) else { return nil }
    // Any other contents name no account, and are rewritten at the next opening.
    return try? JSONDecoder().decode(Name.self, from: bytes).account
  }

  /// Lists the accounts that have data in `base`: the guest first, then the others by name.
  static func all(in base: URL) throws -> [AccountLocation] {
    var places: [AccountLocation] = []
    let guest = try AccountLocation(.guest, in: base)
    if StoreRemoval.isStore(guest.url) { places.append(guest) }
    let folder = accounts(in: base)
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      return places
    } catch {
      throw StoreError(.io, "the accounts in \(folder.path) can't be listed", cause: error)
    }
    var named: [(name: String, place: AccountLocation)] = []
    for folderName in names {
      let url = folder.appendingPathComponent(folderName, isDirectory: true)
      // Something else put a folder under another account's name.
      guard StoreRemoval.isStore(url), let name = try name(in: url.appendingPathComponent(fileName)),
        Self.folder(for: name) == folderName
      else { continue }
      named.append((name, try AccountLocation(.named(name), in: base)))
    }
    return places + named.sorted { $0.name < $1.name }.map(\.place)
  }
}
