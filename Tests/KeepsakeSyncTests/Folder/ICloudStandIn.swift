import Foundation
import KeepsakePlatform
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport

@testable import KeepsakeSync

/// iCloud, as Apple documents it, for one container on three devices: what a device writes is uploaded at some time;
/// others are shown it without its bytes, which arrive some time after they were asked for, and may be removed again;
/// of what two wrote under one name, one wins.
///
/// Every other device shows what isn't there as a hidden `.name.icloud`. The others show it as a file that would block
/// a program that opens it, and folders whose names aren't there as empty ones.
final class ICloudStandIn: FolderCarrier {
  static let happenings: Set<FolderWorld.Happening> = [
    .uploaded, .announced, .brought, .evicted, .emptied, .awaited, .withoutNetwork, .unknown,
  ]
  private static let suffix = ".icloud"

  private struct Item {
    var bytes: Data
    var version: Int
  }
  /// One device's view of the container.
  private struct Device {
    var usesPlaceholders: Bool
    /// The version that this device has or shows of each item, and the bytes of those that are here.
    var known: [String: (version: Int, bytes: Data?)] = [:]
    /// The folders whose names aren't here.
    var hidden: Set<String> = []
    var wanted: Set<String> = []
  }

  /// Each folder is shown first, then asked for, then its files, with what they build on one after the other.
  let passes = 60
  let places: [URL]
  /// Announced, and never brought.
  var lost: Set<String> = []
  /// How often each file was written by a device.
  private(set) var writes: [String: Int] = [:]
  private(set) var besides: [FolderWorld.Happening: Int] = [:]
  private(set) var problems: [String] = []
  private let folder: TemporaryFolder
  private var server: [String: Item] = [:]
  private var devices: [Device]
  private var containers: [ContainerID] = []
  private var versions = 0
  private let seed: UInt64
  private var random: SeededGenerator
  private var calls: [String: Int] = [:]
  /// Whether asking may fail, and what was just looked at may be gone.
  private var isRestless = false

  /// - Parameter begins: How many devices begin before they see what the others did.
  init(seed: UInt64, begins count: Int? = nil) throws {
    let folder = try TemporaryFolder.inMemory()
    (self.folder, self.seed) = (folder, seed)
    random = SeededGenerator(seed: seed &+ 1)
    devices = (0..<3).map { Device(usesPlaceholders: (Int(seed & 1) + $0) % 2 == 0) }
    places = (0..<3).map { folder.url.appendingPathComponent("device \($0)/Keepsake") }
    for place in places { try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true) }
    for index in 0..<(count ?? (seed % 3 == 0 ? 3 : 1)) {
      containers.append(try place(index).container(making: ContainerID(high: 0, low: UInt64(3 - index))))
    }
  }

  private func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  /// Picks by how often an item was called for, so that what happens doesn't depend on the order of a device's calls.
  private func pick(_ count: Int, at path: String, _ index: Int) -> Int {
    let call = "\(index) \(path)"
    calls[call, default: 0] += 1
    let place = "\(seed) \(call) \(calls[call] ?? 0)".utf8.reduce(14_695_981_039_346_656_037) { hash, byte in
      (hash ^ UInt64(byte)) &* 1_099_511_628_211
    }
    var random = SeededGenerator(seed: place)
    return Int.random(in: 0..<count, using: &random)
  }

  private func count(_ what: FolderWorld.Happening) { besides[what, default: 0] += 1 }

  // MARK: What a device calls

  func place(_ index: Int) -> FolderPlace {
    FolderPlace(places[index], by: ICloudFolder(ubiquity(index), patience: .zero), of: .account)
  }

  func container(_ index: Int) -> ContainerID { containers[min(index, containers.count - 1)] }

  func ubiquity(_ index: Int) -> Ubiquity {
    // Unchecked: everything happens on the test's thread.
    nonisolated(unsafe) let this = self
    return Ubiquity(
      container: { _ in this.places[index].deletingLastPathComponent() },
      isHere: { url in
        let path = this.path(of: url, index)
        if this.isRestless, this.pick(100, at: path, index) == 0 {
          this.count(.unknown)
          throw CocoaError(.fileReadUnknown)
        }
        return this.isHere(path, index)
      },
      fetch: { try this.fetch(this.path(of: $0, index), index) },
      coordinate: { try this.coordinate($0, $1, index, $2) },
      temporaryFolder: { _ in
        let url = this.folder.url.appendingPathComponent("temporary \(index)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
      })
  }

  /// Empty for what isn't in the folder.
  private func path(of url: URL, _ index: Int) -> String {
    let root = places[index].path + "/"
    return url.path.hasPrefix(root) ? String(url.path.dropFirst(root.count)) : ""
  }

  private func isHere(_ path: String, _ index: Int) -> Bool {
    guard !devices[index].hidden.contains(path) else { return false }
    guard let known = devices[index].known[path] else { return true }
    return known.bytes != nil
  }

  private func fetch(_ path: String, _ index: Int) throws {
    if isRestless, pick(5, at: path, index) == 0 {
      count(.withoutNetwork)
      throw CocoaError(.fileReadUnknown)
    }
    guard !isHere(path, index), !lost.contains(path) else { return }
    if devices[index].wanted.insert(path).inserted { count(.awaited) }
  }

  private func coordinate(
    _ purpose: Ubiquity.Purpose, _ url: URL, _ index: Int, _ body: (URL) throws -> Void
  ) throws {
    let path = path(of: url, index)
    if folders(above: path).contains(where: devices[index].hidden.contains) {
      problems.append("\(path) is in a folder that isn't here: that may block")
    }
    if purpose == .read, !isHere(path, index) { problems.append("\(path) is opened, and isn't here: that may block") }
    if isRestless, pick(40, at: path, index) == 0 { try evict(path, index) }
    // It was removed a moment ago: the system blocks until it is there again.
    if purpose == .read { try bring(path, index) }
    try body(url)
    guard purpose == .replace else { return }
    writes[path, default: 0] += 1
    if devices[index].known[path]?.bytes == nil { devices[index].known[path] = nil }
    let inside = try FileManager.default.contentsOfDirectory(atPath: url.deletingLastPathComponent().path)
    if inside.contains(where: { $0.hasSuffix(".partial") }) { problems.append("half a file is in iCloud's folder") }
  }

  // MARK: What is on a device

  private func real(_ path: String, _ index: Int) -> URL { places[index].appendingPathComponent(path) }

  private func placeholder(_ path: String, _ index: Int) -> URL {
    let url = real(path, index)
    return url.deletingLastPathComponent().appendingPathComponent(".\(url.lastPathComponent)\(Self.suffix)")
  }

  private func exists(_ url: URL) -> Bool { FileManager.default.fileExists(atPath: url.path) }

  private func folders(above path: String) -> [String] {
    let parts = path.split(separator: "/").dropLast()
    return parts.indices.map { parts[...$0].joined(separator: "/") }
  }

  /// The bytes of a file that is here.
  private func bytes(_ path: String, _ index: Int) -> Data? {
    isHere(path, index) ? try? Data(contentsOf: real(path, index)) : nil
  }

  private func isListed(_ path: String, _ index: Int) -> Bool {
    exists(isHere(path, index) || !devices[index].usesPlaceholders ? real(path, index) : placeholder(path, index))
  }

  /// Shows a file without its bytes.
  private func show(_ path: String, _ version: Int, _ index: Int) throws {
    let url = devices[index].usesPlaceholders ? placeholder(path, index) : real(path, index)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    if devices[index].usesPlaceholders { try? FileManager.default.removeItem(at: real(path, index)) }
    // What a program would see that opens it all the same.
    try Data("not here".utf8).write(to: url)
    devices[index].known[path] = (version, nil)
  }

  private func put(_ item: Item, _ path: String, _ index: Int) throws {
    try? FileManager.default.removeItem(at: placeholder(path, index))
    try FileManager.default.createDirectory(
      at: real(path, index).deletingLastPathComponent(), withIntermediateDirectories: true)
    try item.bytes.write(to: real(path, index), options: .atomic)
    devices[index].known[path] = (item.version, item.bytes)
    devices[index].wanted.remove(path)
  }

  /// What programs wrote, by relative path: no hidden files.
  private func written(_ index: Int) throws -> [String] {
    let paths = try FileManager.default.subpathsOfDirectory(atPath: places[index].path).filter { path in
      var isFolder: ObjCBool = false
      let url = real(path, index)
      return !url.lastPathComponent.hasPrefix(".")
        && FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) && !isFolder.boolValue
    }
    return paths.sorted()
  }

  func files(_ index: Int) throws -> Set<String> {
    let known = devices[index].known.keys.filter { isListed($0, index) }
    // What is in a folder that isn't here is still there.
    let hidden = server.keys.filter { folders(above: $0).contains(where: devices[index].hidden.contains) }
    return Set(try written(index)).union(known).union(hidden).filter {
      $0.hasPrefix("state/") || $0.hasPrefix("contents/")
    }
  }

  // MARK: What iCloud does

  func carry(using random: inout SeededGenerator) throws -> FolderWorld.Happening? {
    isRestless = true
    let index = pick(3)
    switch pick(13) {
    case 0...3: return try one(of: written(index)) { try upload($0, index) }
    case 4...6: return try one(of: server.keys.sorted()) { try announce($0, index) }
    case 7...9: return try one(of: devices[index].wanted.sorted()) { try bring($0, index) ? .brought : nil }
    case 10: return try one(of: written(index)) { try evict($0, index) }
    case 11: return try one(of: ["containers", "contents", "state"]) { try hide($0, index) }
    default:
      try findDeletions(index)
      return nil
    }
  }

  private func one(
    of paths: [String], _ body: (String) throws -> FolderWorld.Happening?
  ) rethrows -> FolderWorld.Happening? {
    paths.isEmpty ? nil : try body(paths[pick(paths.count)])
  }

  private func upload(_ path: String, _ index: Int) throws -> FolderWorld.Happening? {
    guard let bytes = bytes(path, index), bytes != devices[index].known[path]?.bytes else { return nil }
    versions += 1
    guard let there = server[path], there.version != devices[index].known[path]?.version, there.bytes != bytes else {
      let item = Item(bytes: bytes, version: versions)
      server[path] = item
      devices[index].known[path] = (item.version, bytes)
      return .uploaded
    }
    // Another device has stored other bytes meanwhile.
    let winner = Item(bytes: pick(2) == 0 ? bytes : there.bytes, version: versions)
    server[path] = winner
    try put(winner, path, index)
    return .bothWrote
  }

  /// Shows a file that is new in iCloud, or another version of it; or a folder that it is in.
  private func announce(_ path: String, _ index: Int) throws -> FolderWorld.Happening? {
    guard let item = server[path], devices[index].known[path]?.version != item.version else { return nil }
    for folder in folders(above: path) {
      if devices[index].hidden.contains(folder) { return nil }
      guard !devices[index].usesPlaceholders, !exists(real(folder, index)) else { continue }
      try FileManager.default.createDirectory(at: real(folder, index), withIntermediateDirectories: false)
      devices[index].hidden.insert(folder)
      return .announced
    }
    // What was written here and isn't uploaded has to be uploaded first.
    if let local = bytes(path, index), local != devices[index].known[path]?.bytes { return try upload(path, index) }
    if bytes(path, index) != nil { try put(item, path, index) } else { try show(path, item.version, index) }
    return .announced
  }

  @discardableResult
  private func bring(_ path: String, _ index: Int) throws -> Bool {
    devices[index].wanted.remove(path)
    if devices[index].hidden.remove(path) != nil {
      for inside in server.keys.sorted() where inside.hasPrefix(path + "/") { _ = try announce(inside, index) }
      return true
    }
    guard !isHere(path, index), isListed(path, index), let item = server[path] else { return false }
    try put(item, path, index)
    return true
  }

  /// Whether a file is in iCloud as it is here.
  private func isStored(_ path: String, _ index: Int) -> Bool {
    guard let local = bytes(path, index), let known = devices[index].known[path] else { return false }
    return known.bytes == local && server[path]?.version == known.version
  }

  @discardableResult
  private func evict(_ path: String, _ index: Int) throws -> FolderWorld.Happening? {
    guard isStored(path, index), let known = devices[index].known[path] else { return nil }
    try show(path, known.version, index)
    return .evicted
  }

  /// Removes the names in a folder from a device, with all that is in it.
  @discardableResult
  func hide(_ folder: String, _ index: Int) throws -> FolderWorld.Happening? {
    guard !devices[index].usesPlaceholders, exists(real(folder, index)), !devices[index].hidden.contains(folder)
    else { return nil }
    let written = try written(index).filter { $0.hasPrefix(folder + "/") }
    let known = devices[index].known.keys.filter { $0.hasPrefix(folder + "/") }
    guard written.allSatisfy({ !isHere($0, index) || isStored($0, index) }),
      known.allSatisfy({ isListed($0, index) })
    else { return nil }
    for name in try FileManager.default.contentsOfDirectory(atPath: real(folder, index).path) {
      try FileManager.default.removeItem(at: real("\(folder)/\(name)", index))
    }
    for path in known { devices[index].known[path] = nil }
    devices[index].hidden = devices[index].hidden.filter { !$0.hasPrefix(folder + "/") }.union([folder])
    devices[index].wanted = devices[index].wanted.filter { !$0.hasPrefix(folder + "/") }
    return .emptied
  }

  /// Removes the bytes of everything from a device, as one that is short of space does.
  func evictAll(_ index: Int) throws {
    for path in try written(index) { try evict(path, index) }
  }

  /// What programs asked for, and didn't get yet.
  func wanted(_ index: Int) -> Set<String> { devices[index].wanted }

  /// What a program removed is removed everywhere.
  private func findDeletions(_ index: Int) throws {
    for (path, known) in devices[index].known where !isListed(path, index) {
      devices[index].known[path] = nil
      devices[index].wanted.remove(path)
      guard server[path]?.version == known.version else { continue }
      server[path] = nil
      for other in devices.indices where other != index && devices[other].known[path] != nil {
        // What was written there since stays, and is uploaded anew.
        let isChanged = bytes(path, other).map { $0 != devices[other].known[path]?.bytes } ?? false
        if !isChanged {
          for url in [real(path, other), placeholder(path, other)] { try? FileManager.default.removeItem(at: url) }
        }
        devices[other].known[path] = nil
        devices[other].wanted.remove(path)
      }
    }
  }

  func bringAll() throws {
    isRestless = false
    for index in devices.indices {
      try findDeletions(index)
      for path in try written(index) { _ = try upload(path, index) }
    }
    for index in devices.indices {
      for path in server.keys.sorted() { _ = try announce(path, index) }
      for path in devices[index].wanted.sorted() { try bring(path, index) }
    }
  }

  var isIdle: Bool { devices.allSatisfy(\.wanted.isEmpty) }

  func removed(_ paths: Set<String>) throws {
    for index in devices.indices { try findDeletions(index) }
  }
}
