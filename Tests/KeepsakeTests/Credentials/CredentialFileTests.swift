import Dispatch
import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync
import TestSupport
import Testing

@testable import Keepsake

/// A credential store that calls something each time it is read.
private struct CalledCredentials: CredentialStore {
  let base: MemoryCredentials
  let called: @Sendable () -> Void

  func read(_ key: String) throws -> Data? {
    called()
    return try base.read(key)
  }

  func write(_ data: Data, for key: String) throws { try base.write(data, for: key) }

  func remove(_ key: String) throws { try base.remove(key) }
}

/// Credentials in a file, in a credential store, and on the way from one to the other.
@Suite struct CredentialFileTests {
  let folder: TemporaryFolder
  let store = MemoryCredentials()

  init() throws { folder = try TemporaryFolder() }

  private static func contents(_ number: UInt64 = 1, token: String = "a token") throws -> CloudFile.Contents {
    CloudFile.Contents(
      credentials: CloudCredentials(
        url: try #require(URL(string: "http://127.0.0.1:1/")), device: DeviceID(high: 0, low: number),
        player: PlayerID(high: 0, low: number), container: ContainerID(high: 0, low: number), token: token))
  }

  private var bytes: Data { get throws { try Data(contentsOf: folder.url.appendingPathComponent(CloudFile.name)) } }

  private func file(_ credentials: CredentialStorage) -> CloudFile { CloudFile(in: folder.url, of: nil, credentials) }

  private func isLost(_ file: CloudFile) throws -> Bool { if case .lost = try file.state() { true } else { false } }

  private func permissions(_ name: String = CloudFile.name) throws -> Int? {
    let path = folder.url.appendingPathComponent(name).path
    return try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  /// The key in the file; nil if it isn't a reference and nothing else.
  private func key() throws -> String? {
    let object = try #require(try JSONSerialization.jsonObject(with: bytes) as? [String: Any])
    return Set(object.keys).subtracting(["folder", "device"]) == ["stored"] ? object["stored"] as? String : nil
  }

  @Test("in the folder, credentials are in the same file as ever, which only the user may read")
  func inFolder() throws {
    let contents = try Self.contents()
    try file(.folder).write(contents)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
    #expect(try bytes == encoder.encode(contents))
    #expect(try permissions() == 0o600)
    #expect(try file(.folder).read()?.credentials == contents.credentials)
  }

  @Test("with a store, the file has a random key and no token, and a new token changes the entry alone")
  func inStore() throws {
    let file = file(.store(store))
    try file.write(Self.contents())
    let key = try #require(try key())
    #expect(key.count == 32 && key.allSatisfy(\.isHexDigit))
    #expect(try permissions() == 0o600)
    #expect(try file.read()?.credentials.token == "a token" && Array(store.entries.keys) == [key])
    try file.write(Self.contents(token: "another token"))
    #expect(try self.key() == key)
    #expect(try file.read()?.credentials.token == "another token" && store.entries.count == 1)
  }

  @Test("two games with one store don't meet, and removing the credentials of one leaves the other's")
  func twoGames() throws {
    let other = try TemporaryFolder()
    let theirs = CloudFile(in: other.url, of: nil, .store(store))
    try file(.store(store)).write(Self.contents(1))
    try theirs.write(Self.contents(2))
    #expect(try file(.store(store)).read()?.credentials == Self.contents(1).credentials)
    #expect(try theirs.read()?.credentials == Self.contents(2).credentials && store.entries.count == 2)
    try GameData.removeCredentials(at: folder.url, from: .store(store))
    #expect(try theirs.read()?.credentials == Self.contents(2).credentials && store.entries.count == 1)
    #expect(try isLost(file(.store(store))))
  }

  @Test("while the store is busy with the credentials of one folder, those of others are in reach")
  func busyStore() throws {
    let other = try TemporaryFolder()
    try CloudFile(in: other.url, of: nil, .store(store)).write(Self.contents(2))
    try FormerClouds(in: other.url, of: nil, .store(store)).add([Self.contents(3).credentials])
    try FormerClouds(in: folder.url, of: nil, .store(store)).add([Self.contents(1).credentials])
    let (place, theirs, ended) = (other.url, store, Shared<[Bool]>([]))
    let busy = CalledCredentials(base: store) {
      let done = DispatchSemaphore(value: 0)
      Thread.detachNewThread {
        let known = try? CloudFile(in: place, of: nil, .store(theirs)).read()
        let former = try? FormerClouds(in: place, of: nil, .store(theirs)).all()
        if known != nil, former?.count == 1 { done.signal() }
      }
      ended.value.append(done.wait(timeout: .now() + 10) == .success)
    }
    _ = try FormerClouds(in: folder.url, of: nil, .store(busy)).all()
    #expect(ended.value == [true])
  }

  @Test("what is in the folder is moved into the store, and the token is in the folder no more")
  func moves() throws {
    try file(.folder).write(Self.contents())
    let file = file(.store(store))
    #expect(try file.read()?.credentials.token == "a token" && store.entries.isEmpty, "it is used where it is")
    for _ in 1...2 { try file.move() }
    #expect(try file.read()?.credentials == Self.contents().credentials && store.entries.count == 1)
    #expect(try key() == store.entries.keys.first)
    try self.file(.store(MemoryCredentials())).move()
    #expect(try isLost(self.file(.store(MemoryCredentials()))), "nothing is moved out of another store")
    #expect(try file.read() != nil)
  }

  @Test("if moving fails or ends at any step, the file is as it was, and the next attempt moves it")
  func movingFails() throws {
    try file(.folder).write(Self.contents())
    let before = try bytes
    // The last two are a program that ends after the entry was written: nothing cleans up.
    for faults: Set<MemoryCredentials.Fault> in [
      [.write], [.forgetting], [.read], [.afterWriting], [.afterWriting, .remove], [.read, .remove],
    ] {
      store.faults.value = faults
      #expect(storeErrorCode { try file(.store(store)).move() } == .io, "\(faults)")
      #expect(try bytes == before, "\(faults)")
      #expect(try file(.store(store)).read()?.credentials.token == "a token", "\(faults)")
      #expect(store.entries.isEmpty || faults.contains(.remove), "\(faults)")
    }
    store.faults.value = []
    try file(.store(store)).move()
    #expect(try file(.store(store)).read()?.credentials == Self.contents().credentials)
    #expect(try key() != nil)
  }

  @Test("a new token that can't be stored leaves the one before")
  func renewalFails() throws {
    let file = file(.store(store))
    try file.write(Self.contents())
    store.faults.value = [.write]
    #expect(storeErrorCode { try file.write(Self.contents(token: "another token")) } == .io)
    #expect(try file.read()?.credentials.token == "a token")
  }

  @Test("a folder that is copied to another machine finds nothing there, and the original goes on")
  func copied() throws {
    try file(.store(store)).write(Self.contents())
    let copy = folder.url.appendingPathComponent("copy")
    try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: true)
    try FileManager.default.copyItem(
      at: folder.url.appendingPathComponent(CloudFile.name), to: copy.appendingPathComponent(CloudFile.name))
    let elsewhere = CloudFile(in: copy, of: nil, .store(MemoryCredentials()))
    #expect(try isLost(elsewhere) && elsewhere.read() == nil)
    #expect(try file(.store(store)).read() != nil)
    try elsewhere.write(Self.contents(2))
    #expect(try elsewhere.read()?.credentials == Self.contents(2).credentials, "it has joined again")
  }

  @Test("a store that can't be read is an error, and never looks as if there were no credentials")
  func readingFails() throws {
    try file(.store(store)).write(Self.contents())
    store.faults.value = [.read]
    #expect(storeErrorCode { _ = try file(.store(store)).read() } == .io)
    #expect(storeErrorCode { _ = try file(.store(store)).state() } == .io)
    store.faults.value = []
    #expect(try file(.store(store)).read() != nil)
  }

  @Test("without the store that has the credentials, they are neither read nor replaced")
  func storeNotGiven() throws {
    try file(.store(store)).write(Self.contents())
    let before = try bytes
    #expect(storeErrorCode { _ = try file(.folder).read() } == .misuse)
    #expect(storeErrorCode { try file(.folder).write(Self.contents(2)) } == .misuse)
    #expect(storeErrorCode { try GameData.removeCredentials(at: folder.url, from: .folder) } == .misuse)
    #expect(try bytes == before && store.entries.count == 1)
  }

  @Test("credentials move back into the folder, or into another store, if the game names the one before")
  func movesOn() throws {
    try file(.store(store)).write(Self.contents())
    let second = MemoryCredentials()
    let next = file(.store(second).moving(from: store))
    #expect(try next.read()?.credentials.token == "a token")
    try next.move()
    #expect(store.entries.isEmpty && second.entries.count == 1)
    #expect(try file(.store(second)).read()?.credentials == Self.contents().credentials)
    let back = file(.folder.moving(from: second))
    #expect(try back.read()?.credentials.token == "a token")
    for _ in 1...2 { try back.move() }
    #expect(try file(.folder).read()?.credentials == Self.contents().credentials && second.entries.isEmpty)
    #expect(try permissions() == 0o600)
  }

  @Test("a failing store keeps what was to move out of it")
  func movingOnFails() throws {
    try file(.store(store)).write(Self.contents())
    let second = MemoryCredentials()
    second.faults.value = [.write]
    #expect(storeErrorCode { try file(.store(second).moving(from: store)).move() } == .io)
    #expect(try file(.store(store)).read() != nil)
    second.faults.value = []
    // What couldn't be removed is older than what counts.
    store.faults.value = [.remove]
    let next = file(.store(second).moving(from: store))
    try next.write(Self.contents(token: "another token"))
    #expect(try next.read()?.credentials.token == "another token" && store.entries.count == 1)
  }

  @Test("a store that kept what was moved out of it is an error, until it is removed")
  func formerKeepsEntry() throws {
    try file(.store(store)).write(Self.contents())
    let second = MemoryCredentials()
    let next = file(.store(second).moving(from: store))
    store.faults.value = [.remove]
    for _ in 1...2 {
      #expect(storeErrorCode { try next.move() } == .io)
      #expect(try next.read()?.credentials.token == "a token" && second.entries.count == 1)
    }
    store.faults.value = []
    try next.move()
    #expect(try store.entries.isEmpty && next.read()?.credentials.token == "a token")
    // Out of a folder, nothing knows the key afterwards.
    second.faults.value = [.remove]
    let back = file(.folder.moving(from: second))
    #expect(storeErrorCode { try back.write(Self.contents(token: "another token")) } == .io)
    #expect(try back.read()?.credentials.token == "a token", "nothing has changed")
    try back.write(Self.contents(token: "another token"))
    #expect(try file(.folder).read()?.credentials.token == "another token" && second.entries.count == 1)
  }

  @Test("what a crash left of a write of the file goes when it is moved")
  func partial() throws {
    try file(.folder).write(Self.contents())
    let names = [".\(CloudFile.name).1.a.partial", ".other.json.1.a.partial"]
    for name in names { try bytes.write(to: folder.url.appendingPathComponent(name)) }
    try file(.store(store)).move()
    let left = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
    #expect(left.filter { $0.hasSuffix(".partial") } == [names[1]])
  }

  @Test("a key that isn't one, and an entry that isn't one, are damage")
  func damaged() throws {
    try file(.store(store)).write(Self.contents())
    let key = try #require(try key())
    try store.write(Data("nothing".utf8), for: key)
    #expect(storeErrorCode { _ = try file(.store(store)).read() } == .damaged)
    let url = folder.url.appendingPathComponent(CloudFile.name)
    for wrong in ["", "a", key + "0", key.dropLast() + "X", key.uppercased() + "é"] {
      try Data("{\"stored\":\"\(wrong)\"}".utf8).write(to: url)
      #expect(storeErrorCode { _ = try file(.store(store)).read() } == .damaged, "\(wrong)")
    }
  }

  @Test("more than a store has to take isn't written")
  func tooLarge() throws {
    let file = file(.store(store))
    try file.write(Self.contents())
    let long = String(repeating: "a", count: CredentialStorage.maximumBytes)
    #expect(storeErrorCode { try file.write(Self.contents(token: long)) } == .tooLarge)
    #expect(try file.read()?.credentials.token == "a token")
  }

  @Test("the credentials of players that were left are in the store, too, and go with the rest")
  func former() throws {
    let one = try Self.contents().credentials
    try FormerClouds(in: folder.url, of: nil, .folder).add([one])
    let former = FormerClouds(in: folder.url, of: nil, .store(store))
    try former.move()
    #expect(try former.all() == [one] && store.entries.count == 1)
    let text = try String(contentsOf: folder.url.appendingPathComponent(FormerClouds.name), encoding: .utf8)
    #expect(!text.contains("a token"))
    #expect(try permissions(FormerClouds.name) == 0o600)
    let banks = FormerBanks(folder: folder.url, store: nil, environment: .system, storage: .store(store))
    #expect(try banks.credentials(for: one.container) == one)
    try file(.store(store)).write(Self.contents(2))
    #expect(store.entries.count == 2)
    try GameData.removeCredentials(at: folder.url, from: .store(store))
    #expect(try store.entries.isEmpty && former.all().isEmpty)
  }
}
