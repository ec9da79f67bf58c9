import Foundation

/// A disk on which a recorded run is played, and what a power cut would leave of it at any moment.
///
/// Only what was synced is certain. Of what came after, each write may be there, missing, or there in some of its
/// sectors; a file may have grown before its bytes were written; names may be created, changed and deleted, or not yet.
/// Beyond that the order of the writes doesn't matter: where two of them overlap, either may be the one that remains.
/// As SQLite assumes of today's disks, a torn sector harms no byte outside of the write.
struct CutDisk {
  static let sectorBytes = 512

  /// How much of what wasn't synced a cut leaves.
  enum Extent: CaseIterable {
    /// Nothing of it.
    case nothing
    /// All of it.
    case everything
    /// Any of the changes, each whole or torn.
    case scattered
    /// The first ones, the last of those torn.
    case first
    /// The last ones: those before are still in the disk's cache.
    case last
    /// All but one.
    case allButOne
  }

  private enum Change {
    case write(offset: Int, bytes: Data)
    case truncate(size: Int)
  }

  private struct File {
    var durable = Data()
    /// Since the last sync.
    var changes: [Change] = []
  }

  private enum NameChange {
    case create(String, file: Int)
    case delete(String)
  }

  private var files: [Int: File] = [:]
  private var durableNames: [String: Int] = [:]
  private var nameChanges: [NameChange] = []

  init(_ recording: DiskRecording) {
    for (number, name) in recording.initial.keys.sorted().enumerated() {
      files[number] = File(durable: recording.initial[name] ?? Data())
      durableNames[name] = number
    }
  }

  mutating func play(_ event: DiskEvent) {
    switch event {
    case .create(let file, let name):
      files[file] = File()
      nameChanges.append(.create(name, file: file))
    case .write(let file, let offset, let bytes):
      files[file]?.changes.append(.write(offset: offset, bytes: bytes))
    case .truncate(let file, let size):
      files[file]?.changes.append(.truncate(size: size))
    case .sync(let file):
      guard var synced = files.removeValue(forKey: file) else { return }
      for change in synced.changes { Self.apply(change, to: &synced.durable) }
      synced.changes = []
      files[file] = synced
    case .delete(let name):
      nameChanges.append(.delete(name))
    case .syncFolder:
      for change in nameChanges { Self.apply(change, to: &durableNames) }
      nameChanges = []
      let named = Set(durableNames.values)
      files = files.filter { named.contains($0.key) }
    }
  }

  /// The files that a power cut at this moment leaves, one of the many possibilities.
  func cut(using random: inout SeededRandom) -> [String: Data] {
    var names = durableNames
    let extent = Extent.allCases.randomElement(using: &random) ?? .nothing
    for (index, keeps) in Self.choices(extent, count: nameChanges.count, using: &random).enumerated()
    where keeps != .missing {
      Self.apply(nameChanges[index], to: &names)
    }
    var left: [String: Data] = [:]
    for (name, file) in names.sorted(by: { $0.key < $1.key }) {
      left[name] = files[file].map { Self.cut($0, using: &random) } ?? Data()
    }
    return left
  }

  // MARK: -

  private enum Choice {
    case missing, whole, torn
  }

  /// What becomes of each of `count` changes, oldest first.
  private static func choices(_ extent: Extent, count: Int, using random: inout SeededRandom) -> [Choice] {
    guard count > 0 else { return [] }
    let place = Int.random(in: 0..<count, using: &random)
    return (0..<count).map { index in
      switch extent {
      case .nothing: .missing
      case .everything: .whole
      case .scattered: [.missing, .whole, .torn].randomElement(using: &random) ?? .missing
      case .first: index < place ? .whole : index == place ? .torn : .missing
      case .last: index < place ? .missing : .whole
      case .allButOne: index == place ? .missing : .whole
      }
    }
  }

  private static func cut(_ file: File, using random: inout SeededRandom) -> Data {
    guard !file.changes.isEmpty else { return file.durable }
    // Where a file has grown before its bytes were written, it contains zeros, or old bytes.
    let filler: UInt8 = Int.random(in: 0..<4, using: &random) == 0 ? 0xA5 : 0
    let extent = Extent.allCases.randomElement(using: &random) ?? .nothing
    let choices = choices(extent, count: file.changes.count, using: &random)
    var bytes = file.durable
    var sizes = [bytes.count]
    var size = bytes.count
    for (change, choice) in zip(file.changes, choices) {
      switch change {
      case .truncate(let newSize):
        size = newSize
        if choice != .missing { resize(&bytes, to: newSize, filler: filler) }
      case .write(let offset, let written):
        size = max(size, offset + written.count)
        switch choice {
        case .missing: break
        case .whole: write(written, at: offset, to: &bytes, filler: filler)
        case .torn:
          for part in sectors(of: written, at: offset) where Bool.random(using: &random) {
            write(written[part], at: offset + part.lowerBound - written.startIndex, to: &bytes, filler: filler)
          }
        }
      }
      sizes.append(size)
    }
    switch Int.random(in: 0..<6, using: &random) {
    case 0: resize(&bytes, to: sizes.randomElement(using: &random) ?? size, filler: filler)
    case 1: if size > bytes.count { resize(&bytes, to: size, filler: filler) }
    case 2: if bytes.count > file.durable.count { resize(&bytes, to: file.durable.count, filler: filler) }
    default: break
    }
    return bytes
  }

  /// The parts of a write that are in one sector each, as ranges of its bytes.
  private static func sectors(of bytes: Data, at offset: Int) -> [Range<Data.Index>] {
    var parts: [Range<Data.Index>] = []
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, ((offset + start) / sectorBytes + 1) * sectorBytes - offset)
      parts.append((bytes.startIndex + start)..<(bytes.startIndex + end))
      start = end
    }
    return parts
  }

  private static func apply(_ change: Change, to bytes: inout Data) {
    switch change {
    case .write(let offset, let written): write(written, at: offset, to: &bytes, filler: 0)
    case .truncate(let size): resize(&bytes, to: size, filler: 0)
    }
  }

  private static func apply(_ change: NameChange, to names: inout [String: Int]) {
    switch change {
    case .create(let name, let file): names[name] = file
    case .delete(let name): names[name] = nil
    }
  }

  private static func write(_ written: Data, at offset: Int, to bytes: inout Data, filler: UInt8) {
    if bytes.count < offset { resize(&bytes, to: offset, filler: filler) }
    let end = min(bytes.count, offset + written.count)
    bytes.replaceSubrange(offset..<end, with: written)
  }

  private static func resize(_ bytes: inout Data, to size: Int, filler: UInt8) {
    if size < bytes.count {
      bytes.removeSubrange(size..<bytes.count)
    } else {
      bytes.append(Data(repeating: filler, count: size - bytes.count))
    }
  }
}
