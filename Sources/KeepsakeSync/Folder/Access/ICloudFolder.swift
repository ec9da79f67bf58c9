import Foundation
import KeepsakePlatform
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// A folder in iCloud.
///
/// iCloud shows a file before its bytes are there, and may remove the bytes of one that it has stored. Such a file is a
/// hidden `.name.icloud` in its place, or, on newer systems, one that is fetched when it is opened, which may take as
/// long as the network does; the names in a folder may be missing in the same way. None of these is opened here: it is
/// asked for, and counts as arriving until it is there.
///
/// Reading and writing is coordinated with the program that syncs the folder. What two devices write under one name at
/// the same time is kept as versions of it, one of which wins. Whichever does is right here, since a name says what is
/// in the file.
final class ICloudFolder: FolderAccess {
  private let plain = PlainFolder()
  private let ubiquity: Ubiquity
  /// How long an item that was asked for isn't asked for again.
  private let patience: Duration
  private let asked = Mutex<[String: ContinuousClock.Instant]>([:])
  private static let maximumAsked = 10_000

  init(_ ubiquity: Ubiquity, patience: Duration = .seconds(60)) {
    (self.ubiquity, self.patience) = (ubiquity, patience)
  }

  func item(at path: String, known: FolderSignature?) throws(TransportFailure) -> FolderItem? {
    guard try isReached(path) else { return .unlisted }
    switch try plain.item(at: path) {
    case .file(let signature)? where signature == known: return .file(signature)
    case .file(let signature)?: return try isHere(path) ? .file(signature) : try now(path)
    case .folder?: return try isHere(path) ? .folder : try now(path)
    case nil: return try now(path)
    case let item?: return item
    }
  }

  func names(in folder: String) throws(TransportFailure) -> [String]? {
    switch try item(at: folder) {
    case .arriving?, .unlisted?:
      fetch(folder)
      throw .stillArriving(folder)
    case .file?, .folder?, .other?, nil: break
    }
    guard let names = try plain.names(in: folder) else { return nil }
    return Set(names.map { Self.named(by: $0) ?? $0 }).sorted()
  }

  func read(_ path: String, limit: Int, isPrefix: Bool) throws(TransportFailure) -> Data? {
    switch try item(at: path) {
    case .file?: break
    case .arriving?, .unlisted?:
      fetch(path)
      throw .stillArriving(path)
    case .folder?, .other?, nil: return nil
    }
    return try attempt(path) {
      var bytes: Data?
      try self.coordinate(.read, path) { bytes = try self.plain.read($0, limit: limit, isPrefix: isPrefix) }
      return bytes
    }
  }

  func makeFolder(_ path: String) throws {
    try requireReached(path)
    try plain.makeFolder(path)
  }

  func write(_ bytes: Data, to path: String) throws {
    try requireReached(path)
    let temporary = try attempt(path) { try self.ubiquity.temporaryFolder(URL(fileURLWithPath: path)) }
    // The system empties its temporary folders, too.
    defer { try? FileManager.default.removeItem(at: temporary) }
    try coordinate(.replace, path) { path in
      try AtomicFile.write(bytes, to: URL(fileURLWithPath: path), through: temporary)
      // It would stand for the bytes of before.
      try self.plain.remove(Self.placeholder(path))
    }
  }

  func remove(_ path: String) throws(TransportFailure) {
    try attempt(path) {
      try self.coordinate(.delete, path) { path in
        try self.plain.remove(path)
        try self.plain.remove(Self.placeholder(path))
      }
    }
  }

  func fetch(_ path: String) {
    let isDue = asked.withLock { asked in
      let now = ContinuousClock.now
      if let last = asked[path], now - last < patience { return false }
      if asked.count >= Self.maximumAsked { asked = asked.filter { now - $0.value < patience } }
      // So many at once: that some are asked for again costs less than to know them all.
      if asked.count >= Self.maximumAsked { asked = [:] }
      asked[path] = now
      return true
    }
    guard isDue else { return }
    // One that can't be asked for now, as without a network, is asked for again.
    try? ubiquity.fetch(URL(fileURLWithPath: path))
  }

  // MARK: What is here

  /// Returns whether the folders above an item can be looked into, those that the cloud makes. Asks for those that
  /// can't.
  private func isReached(_ path: String) throws(TransportFailure) -> Bool {
    let parent = (path as NSString).deletingLastPathComponent
    for folder in [(parent as NSString).deletingLastPathComponent, parent] {
      guard case .folder? = try plain.item(at: folder), try !isHere(folder) else { continue }
      fetch(folder)
      return false
    }
    return true
  }

  private func requireReached(_ path: String) throws(TransportFailure) {
    guard try isReached(path) else { throw .stillArriving(path) }
  }

  private func isHere(_ path: String) throws(TransportFailure) -> Bool {
    do {
      return try ubiquity.isHere(URL(fileURLWithPath: path))
    } catch {
      // It is gone, or iCloud can't tell: one item mustn't keep the others away.
      return false
    }
  }

  /// Looks again at something that isn't here: it may be gone since.
  private func now(_ path: String) throws(TransportFailure) -> FolderItem? {
    for path in [path, Self.placeholder(path)] where try plain.item(at: path) != nil { return .arriving }
    return nil
  }

  // MARK: Names

  private static let suffix = ".icloud"

  /// The hidden file that stands for one whose bytes aren't here.
  private static func placeholder(_ path: String) -> String {
    let url = URL(fileURLWithPath: path)
    return "\(url.deletingLastPathComponent().path)/.\(url.lastPathComponent)\(suffix)"
  }

  /// The name of the file that a placeholder stands for; nil if it is none.
  private static func named(by name: String) -> String? {
    guard name.hasPrefix("."), name.hasSuffix(suffix), name.utf8.count > suffix.utf8.count + 1 else { return nil }
    return String(name.dropFirst().dropLast(suffix.count))
  }

  // MARK: Calls

  private func coordinate(_ purpose: Ubiquity.Purpose, _ path: String, _ body: (String) throws -> Void) throws {
    try ubiquity.coordinate(purpose, URL(fileURLWithPath: path)) { try body($0.path) }
  }

  private func attempt<Value>(_ path: String, _ body: () throws -> Value) throws(TransportFailure) -> Value {
    do {
      return try body()
    } catch let failure as TransportFailure {
      throw failure
    } catch {
      throw TransportFailure(
        .server(retryAfterMilliseconds: nil), "iCloud can't do this with \(path): \(ErrorReason.text(error))")
    }
  }
}
