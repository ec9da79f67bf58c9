import Foundation
import KeepsakePlatform
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// A folder in iCloud.
///
/// iCloud shows a file before its bytes are there, and may remove the bytes of one that it has stored. Such a file is a
/// hidden `.name.icloud` in its place, or, on newer systems, one that is fetched when it is opened, which may take as
/// long as the network does. Neither is opened here: it is asked for, and counts as arriving until it is there. What
/// two devices write under one name at the same time is kept as versions of it, one of which wins.
///
/// Reading and writing is coordinated with the program that syncs the folder.
final class ICloudFolder: FolderAccess {
  private let plain = PlainFolder()
  private let ubiquity: Ubiquity
  /// How long a file that was asked for isn't asked for again.
  private let patience: Duration
  private let asked = Mutex<[String: ContinuousClock.Instant]>([:])
  private static let maximumAsked = 10_000

  init(_ ubiquity: Ubiquity, patience: Duration = .seconds(60)) {
    (self.ubiquity, self.patience) = (ubiquity, patience)
  }

  func item(at path: String) throws(TransportFailure) -> FolderItem? {
    switch try plain.item(at: path) {
    case .file(let signature)?:
      do {
        return try ubiquity.isHere(URL(fileURLWithPath: path)) ? .file(signature) : .arriving
      } catch {
        // It is gone, or iCloud can't tell: one file mustn't keep the others away.
        return try plain.item(at: path) == nil ? nil : .arriving
      }
    case nil: return try plain.item(at: Self.placeholder(path)) == nil ? nil : .arriving
    case let item?: return item
    }
  }

  func names(in folder: String) throws(TransportFailure) -> [String]? {
    guard let names = try plain.names(in: folder) else { return nil }
    return Set(names.map { Self.named(by: $0) ?? $0 }).sorted()
  }

  func read(_ path: String, limit: Int, isPrefix: Bool) throws(TransportFailure) -> Data? {
    guard case .file? = try item(at: path) else { return nil }
    return try attempt(path) {
      var bytes: Data?
      try self.coordinate(.read, path) { bytes = try self.plain.read($0, limit: limit, isPrefix: isPrefix) }
      return bytes
    }
  }

  func makeFolder(_ path: String) throws { try plain.makeFolder(path) }

  func write(_ bytes: Data, to path: String) throws {
    try coordinate(.replace, path) { try self.plain.write(bytes, to: $0) }
    // It would stand for the bytes of before.
    try plain.remove(Self.placeholder(path))
  }

  func create(_ bytes: Data, at path: String) throws -> Bool {
    guard try item(at: path) == nil else { return false }
    var isNew = false
    try coordinate(.replace, path) { isNew = try self.plain.create(bytes, at: $0) }
    return isNew
  }

  func remove(_ path: String) throws(TransportFailure) {
    try attempt(path) { try self.coordinate(.delete, path) { try self.plain.remove($0) } }
    try plain.remove(Self.placeholder(path))
  }

  func fetch(_ path: String) {
    let isDue = asked.withLock { asked in
      let now = ContinuousClock.now
      if let last = asked[path], now - last < patience { return false }
      if asked.count >= Self.maximumAsked { asked = asked.filter { now - $0.value < patience } }
      asked[path] = now
      return true
    }
    guard isDue else { return }
    // One that can't be asked for now, as without a network, is asked for again.
    try? ubiquity.fetch(URL(fileURLWithPath: path))
  }

  func losers(of path: String, limit: Int) throws(TransportFailure) -> [Data] {
    try attempt(path) {
      try self.ubiquity.losers(URL(fileURLWithPath: path)).prefix(FolderLimits.identities).compactMap {
        try self.plain.read($0.path, limit: limit)
      }
    }
  }

  func forgetLosers(of path: String) throws(TransportFailure) {
    try attempt(path) { try self.ubiquity.forgetLosers(URL(fileURLWithPath: path)) }
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
