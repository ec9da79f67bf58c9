import Foundation
import KeepsakeReplication
import KeepsakeStore

/// Where an account's data stand among those of a game's other accounts.
///
/// The guest's are those of the profile `default`: what was played before a game had accounts is a guest's. The others stand in folders whose
/// names say nothing of who they are for, and which no profile can be called like.
struct AccountLocation: Sendable {
  /// What a folder of accounts is called.
  static let folderName = ".accounts"
  /// Says whose folder it is.
  private static let fileName = "account.json"
  /// 128 bits: no two accounts have the same.
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
      guard !name.isEmpty, name.utf8.count <= Account.maximumNameBytes else {
        throw GameDataError(.misuse, "an account's name has 1 to \(Account.maximumNameBytes) bytes")
      }
    }
    (self.base, self.account) = (base, account)
  }

  /// Beside the other accounts, the same on every device.
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

  /// The profile that a seal binds it to.
  var sealName: String { url.lastPathComponent }

  static func accounts(in base: URL) -> URL { base.appendingPathComponent(folderName, isDirectory: true) }

  private static func folder(for name: String) -> String {
    String(ContentHash(of: Data("keepsake account \(name.canonical)".utf8)).description.prefix(digits))
  }

  /// Writes down whose store it is, for lists. To be called by whoever has the store open.
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
    // Whatever else stands there names nobody, and is written anew at the next opening.
    return try? JSONDecoder().decode(Name.self, from: bytes).account
  }

  /// The accounts that have data in `base`: the guest first, the others by name.
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
      // A folder under another account's name was put there by somebody else.
      guard StoreRemoval.isStore(url), let name = try name(in: url.appendingPathComponent(fileName)), Self.folder(for: name) == folderName
      else { continue }
      named.append((name, try AccountLocation(.named(name), in: base)))
    }
    return places + named.sorted { $0.name < $1.name }.map(\.place)
  }
}
