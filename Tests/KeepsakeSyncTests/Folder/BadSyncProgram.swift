import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport

@testable import KeepsakeSync

/// A program that syncs the files of three folders as badly as it can.
final class BadSyncProgram: FolderCarrier {
  static let happenings: Set<FolderWorld.Happening> = [
    .carried, .halves, .conflictedCopies, .temporaries, .deletions, .comebacks,
    // Devices start over, since files that they have written are gone.
    .restarts, .heldParts, .collected,
  ]

  let places: [URL]
  let passes = 12
  let isIdle = true
  let besides: [FolderWorld.Happening: Int] = [:]
  let problems: [String] = []
  private let folders: CloudFolders
  /// Files that were removed on purpose, and may come back.
  private var gone: [(path: String, bytes: Data)] = []

  init() throws {
    let folders = try CloudFolders()
    self.folders = folders
    places = try (0..<3).map { index in
      let folder = try folders.make("copy \(index)")
      try FileManager.default.createDirectory(
        at: folder.appendingPathComponent("state"), withIntermediateDirectories: true)
      return folder
    }
  }

  func place(_ index: Int) -> FolderPlace { .plain(places[index]) }
  func container(_ index: Int) -> ContainerID { FolderDevice.container }

  func files(_ index: Int) throws -> Set<String> { Set(try sortedFiles(index)) }

  private func sortedFiles(_ index: Int) throws -> [String] {
    let names = try FileManager.default.subpathsOfDirectory(atPath: places[index].path).filter { path in
      path.hasPrefix("state/") || path.split(separator: "/").count == 3
    }
    return names.sorted()
  }

  private func isWhole(_ path: String, _ bytes: Data) -> Bool {
    path.hasPrefix("state/") ? StateSegment(bytes) != nil : ContentFile.decoded(bytes) != nil
  }

  private func write(_ bytes: Data, _ index: Int, _ path: String) throws {
    let url = places[index].appendingPathComponent(path)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    // In place, as a bad program does it.
    try bytes.write(to: url)
  }

  func carry(using random: inout SeededGenerator) throws -> FolderWorld.Happening? {
    func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
    let from = pick(3)
    let to = (from + 1 + pick(2)) % 3
    let all = try sortedFiles(from)
    guard !all.isEmpty else { return nil }
    let path = all[pick(all.count)]
    let bytes = try Data(contentsOf: places[from].appendingPathComponent(path))
    let there = places[to].appendingPathComponent(path)
    let isThere = FileManager.default.fileExists(atPath: there.path)
    switch pick(17) {
    case 0...6:
      guard !isThere || isWhole(path, bytes) else { return nil }
      try write(bytes, to, path)
      return .carried
    case 7, 8:
      guard !isThere else { return nil }
      try write(bytes.prefix(pick(bytes.count + 1)), to, path)
      return .halves
    case 9:
      try write(bytes, to, "\(path) (conflicted copy \(pick(3)))")
      return .conflictedCopies
    case 10:
      let url = URL(fileURLWithPath: path)
      try write(
        bytes.prefix(pick(bytes.count + 1)), to,
        "\(path.dropLast(url.lastPathComponent.count)).~tmp~\(url.lastPathComponent.prefix(8))")
      return .temporaries
    case 11, 14:
      // Never the last intact copy.
      guard isWhole(path, bytes), let other = try? Data(contentsOf: there), other == bytes else { return nil }
      try FileManager.default.removeItem(at: places[from].appendingPathComponent(path))
      gone = gone.suffix(40) + [(path, bytes)]
      return .deletions
    case 12:
      guard !gone.isEmpty else { return nil }
      let old = gone[pick(gone.count)]
      try write(old.bytes, to, old.path)
      return .comebacks
    case 13:
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: Double(pick(1_000_000_000)))],
        ofItemAtPath: places[from].appendingPathComponent(path).path)
      return nil
    default:
      var hasCarried = false
      for path in all.shuffled(using: &random).prefix(8) {
        let bytes = try Data(contentsOf: places[from].appendingPathComponent(path))
        guard isWhole(path, bytes) else { continue }
        try write(bytes, to, path)
        hasCarried = true
      }
      return hasCarried ? .carried : nil
    }
  }

  func bringAll() throws {
    var whole: [String: Data] = [:]
    for index in 0..<3 {
      for path in try sortedFiles(index) {
        let bytes = try Data(contentsOf: places[index].appendingPathComponent(path))
        if isWhole(path, bytes) { whole[path] = bytes }
      }
    }
    for index in 0..<3 {
      for (path, bytes) in whole.sorted(by: { $0.key < $1.key }) {
        let url = places[index].appendingPathComponent(path)
        if (try? Data(contentsOf: url)) != bytes { try write(bytes, index, path) }
      }
    }
  }

  func removed(_ paths: Set<String>) throws {
    for path in paths {
      for place in places where FileManager.default.fileExists(atPath: place.path + "/" + path) {
        try FileManager.default.removeItem(at: place.appendingPathComponent(path))
      }
    }
  }
}
