import BenchmarkKit
import Foundation
import GameWorlds

/// What runs in a process of its own: peaks of memory, and saves whose system calls are counted from outside.
enum StoreProbe {
  /// So many saves of one way.
  case saves(DungeonSaves.Way, Int)
  /// So many tasks that save at once.
  case tasks(SlotWay, Int)
  /// Saves 256 MiB into the folder, or loads them from there.
  case largeSave(URL)
  case largeLoad(URL)

  init(_ text: String) throws {
    let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
    let argument = parts.count == 2 ? parts[1] : ""
    switch parts.first {
    case "saves":
      let parts = argument.split(separator: ":").map(String.init)
      guard parts.count == 2, let way = DungeonSaves.Way(rawValue: parts[0]), let count = Int(parts[1]) else {
        throw UsageError(message: "There is no probe \(text)")
      }
      self = .saves(way, count)
    case "tasks":
      let parts = argument.split(separator: ":").map(String.init)
      guard parts.count == 2, let way = SlotWay(rawValue: parts[0]), let count = Int(parts[1]) else {
        throw UsageError(message: "There is no probe \(text)")
      }
      self = .tasks(way, count)
    case "large-save" where !argument.isEmpty: self = .largeSave(URL(filePath: argument))
    case "large-load" where !argument.isEmpty: self = .largeLoad(URL(filePath: argument))
    default: throw UsageError(message: "There is no probe \(text)")
    }
  }

  func run() throws {
    switch self {
    case .saves(let way, let count):
      let saves = try DungeonSaves(way)
      for _ in 0..<count {
        saves.play()
        try saves.save()
      }
      try saves.finish()
    case .tasks(let way, let count):
      let slots = try way.open()
      try SlotFigures.saveTogether(count, slots)
      try slots.finish()
    case .largeSave(let folder): try LargeSave.save(in: folder) { try Self.write(PeakMemory.measure($0).extraBytes) }
    case .largeLoad(let folder): try LargeSave.load(from: folder) { try Self.write(PeakMemory.measure($0).extraBytes) }
    }
  }

  private static func write(_ bytes: Int) throws { FileHandle.standardOutput.write(Data("\(bytes)".utf8)) }
}
