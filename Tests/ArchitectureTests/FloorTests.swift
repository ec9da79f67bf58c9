import Foundation
import TestSupport
import Testing

/// Reads the imports of every source file: the tree is the architecture only as long as no floor imports one above it.
struct FloorTests {
  static let root = Repository.root

  /// Which modules of this package each target may import.
  static let floors: [String: Set<String>] = [
    "KeepsakeMacros": [],
    "KeepsakePlatform": [],
    "KeepsakeArchive": [],
    "KeepsakeInspection": ["KeepsakeArchive"],
    "KeepsakeInterchange": ["KeepsakeArchive"],
    "KeepsakeReplication": [],
    "KeepsakeStore": ["KeepsakePlatform", "KeepsakeReplication", "CZstd"],
    "KeepsakeSync": ["KeepsakePlatform", "KeepsakeReplication", "KeepsakeStore", "CCurl"],
    "Keepsake": [
      "KeepsakeArchive", "KeepsakeInterchange", "KeepsakePlatform", "KeepsakeReplication", "KeepsakeStore",
      "KeepsakeSync",
    ],
    "KeepsakeRecords": [],
    "KeepsakeSimulation": ["KeepsakeArchive", "KeepsakeReplication", "KeepsakeStore", "KeepsakeSync", "Keepsake"],
    "KeepsakeTesting": ["Keepsake", "KeepsakeReplication", "KeepsakeSimulation", "KeepsakeStore", "KeepsakeSync"],
    "KeepsakePostgreSQL": ["CPostgreSQL", "KeepsakePlatform"],
    "KeepsakeServer": ["KeepsakePlatform", "KeepsakePostgreSQL", "KeepsakeReplication"],
    "KeepsakeMirror": ["KeepsakePlatform", "KeepsakeReplication", "KeepsakeStore"],
    "KeepsakeCommand": [
      "Keepsake", "KeepsakeArchive", "KeepsakeInspection", "KeepsakeInterchange", "KeepsakeMirror",
      "KeepsakePlatform", "KeepsakeReplication", "KeepsakeStore", "KeepsakeSync", "KeepsakeServer",
      "KeepsakeSimulation", "CZlib",
    ],
    "CCurl": [],
    "CPostgreSQL": [],
    "CZstd": [],
    "CZlib": [],
  ]

  /// All that the pure floors may import: values and bytes, and hashing; on Apple's platforms vectors and transforms,
  /// too.
  static let pureImports: Set<String> = [
    "Foundation", "Crypto", "KeepsakeMacros", "Synchronization", "simd", "CoreGraphics",
  ]
  /// Which of these modules each pure floor may import.
  static let furtherImports: [String: Set<String>] = [
    "KeepsakeInspection": ["KeepsakeArchive"], "KeepsakeInterchange": ["KeepsakeArchive"],
  ]

  /// Words that reach for a clock, a random source, a file or the network.
  static let impureWords = [
    "Date()", "Date.now", "UUID()", ".now(", "ContinuousClock", "SuspendingClock", "DispatchTime", "DispatchQueue",
    "SystemRandomNumberGenerator", ".random()", ".random(in", ".randomElement()", ".shuffled()", "FileManager",
    "FileHandle",
    "URLSession", "URLRequest", "ProcessInfo", "contentsOf: url", "contentsOfFile", ".write(to:", "getenv", "fopen(",
    "Task.sleep",
  ]

  /// The targets of the system's libraries, which have only headers.
  static let systemLibraries: Set = ["CCurl", "CPostgreSQL", "CZstd", "CZlib"]

  static func sources(of target: String) throws -> [URL] {
    let folder = root.appending(path: "Sources/\(target)")
    let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
    let sources = files.compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }.sorted { $0.path < $1.path }
    #expect(!sources.isEmpty || systemLibraries.contains(target), "\(target) has no sources")
    return sources
  }

  static func imports(in file: URL) throws -> [String] {
    try String(contentsOf: file, encoding: .utf8).split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ").drop {
        $0.hasPrefix("@") || ["public", "package", "internal", "private", "fileprivate"].contains($0)
      }
      guard words.first == "import", let last = words.last else { return nil }
      return last.split(separator: ".").first.map(String.init)
    }
  }

  @Test("every target has its floor in the table")
  func everyTargetIsListed() throws {
    let folders = try FileManager.default.contentsOfDirectory(atPath: Self.root.appending(path: "Sources").path)
    #expect(Set(folders.filter { !$0.hasPrefix(".") }) == Set(Self.floors.keys))
  }

  /// The files that exist for some systems only, as a whole.
  static let filesOfOneSystem: Set = [
    "Keepsake/Credentials/DataProtectionStore.swift", "Keepsake/Credentials/KeychainStore.swift",
    "KeepsakeArchive/Conformances/AppleMatrices.swift", "KeepsakeArchive/Conformances/HalfFloat.swift",
    "KeepsakeArchive/Conformances/PlatformGeometry.swift",
    "KeepsakeSync/HTTP/Connections/CurlConnections.swift", "KeepsakeSync/HTTP/Connections/CurlThreads.swift",
    "KeepsakeSync/HTTP/Connections/CurlTransfer.swift", "KeepsakeSync/HTTP/Connections/HTTPCarrier+Curl.swift",
    "KeepsakeSync/HTTP/Connections/HTTPCarrier+System.swift",
  ]
  /// The files with a part for some systems only: what SwiftUI looks for in the type itself, and zstd's import.
  static let filesWithParts: Set = ["Keepsake/Preferences/Preference.swift", "KeepsakeStore/Content/Zstd.swift"]
  static let systemConditions = ["os(", "canImport(", "targetEnvironment(", "SYSTEM_ZSTD"]

  @Test("only `KeepsakePlatform` asks which system it is compiled for, and files that exist for one as a whole")
  func oneRoomForSystems() throws {
    var found: Set<String> = []
    let others = Self.floors.keys.filter { !Self.systemLibraries.contains($0) && $0 != "KeepsakePlatform" }
    for target in others.sorted() {
      for file in try Self.sources(of: target) {
        let path = file.path.components(separatedBy: "/Sources/").last ?? file.path
        let lines = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
        for (number, line) in lines.enumerated() {
          let line = line.trimmingCharacters(in: .whitespaces)
          guard line.hasPrefix("#if") || line.hasPrefix("#elseif"), Self.systemConditions.contains(where: line.contains)
          else { continue }
          found.insert(path)
          guard !Self.filesWithParts.contains(path) else { continue }
          #expect(number == 0, "\(path):\(number + 1): \(line)")
          #expect(lines.last { !$0.isEmpty } == "#endif" && !lines.contains("#else"), "\(path) isn't for one system")
        }
      }
    }
    #expect(found == Self.filesOfOneSystem.union(Self.filesWithParts))
  }

  /// Waits whose limit becomes a date on Linux, which somebody may set meanwhile.
  static let datedWaits = [".wait(timeout: .now() +", "wait(until: Date", "lock(before:", "NSCondition"]

  @Test("no wait has a limit that depends on the date (`MonotonicCondition`, `Latch` and `TimedLock` have none)")
  func waitsDontDependOnDate() throws {
    for target in Self.floors.keys.sorted() where !Self.systemLibraries.contains(target) {
      for file in try Self.sources(of: target) where file.lastPathComponent != "MonotonicCondition.swift" {
        let text = try String(contentsOf: file, encoding: .utf8)
        for word in Self.datedWaits where text.contains(word) {
          Issue.record("\(target)/\(file.lastPathComponent) has \(word)")
        }
      }
    }
  }

  /// With more files than this, it becomes hard to find something in a folder.
  static let filesPerFolder = 25

  @Test("no folder has more than 25 Swift files", arguments: ["Sources", "Tests"])
  func foldersStaySmall(top: String) throws {
    var counts: [String: Int] = [:]
    let files = try #require(
      FileManager.default.enumerator(at: Self.root.appending(path: top), includingPropertiesForKeys: nil))
    for case let file as URL in files where file.pathExtension == "swift" {
      counts[file.deletingLastPathComponent().path, default: 0] += 1
    }
    #expect(!counts.isEmpty)
    for (folder, count) in counts where count > Self.filesPerFolder {
      Issue.record("\(folder) has \(count) Swift files")
    }
  }

  @Test("no target imports a floor above it", arguments: floors.keys.sorted())
  func arrowsPointDown(target: String) throws {
    let allowed = try #require(Self.floors[target])
    let ours = Set(Self.floors.keys)
    for file in try Self.sources(of: target) {
      for module in try Self.imports(in: file) where ours.contains(module) {
        #expect(allowed.contains(module), "\(file.lastPathComponent) of \(target) imports \(module)")
      }
    }
  }

  @Test(
    "no code of the product creates faults: only tests and the simulation do",
    arguments: ["KeepsakeStore", "KeepsakeSync", "Keepsake", "KeepsakeServer"])
  func nobodyPlants(target: String) throws {
    for file in try Self.sources(of: target) {
      let text = try String(contentsOf: file, encoding: .utf8)
      // Reading `faults` is fine; creating some, or overriding the empty ones, takes one of these words.
      for word in ["Faults", "PlantedBug", "planting:"] {
        #expect(!text.contains(word), "\(file.lastPathComponent): \(word)")
      }
    }
  }

  /// The files that may sleep by the system's clock: those that pass it to the others, and a loop that draws frames.
  static let sleepers: Set<String> = ["SyncService+Environment.swift", "GameEnvironment.swift", "Autosave.swift"]

  @Test("code that syncs sleeps by the clock that it was given", arguments: ["KeepsakeSync", "Keepsake"])
  func sleepIsHandedIn(target: String) throws {
    for file in try Self.sources(of: target) where !Self.sleepers.contains(file.lastPathComponent) {
      #expect(try !String(contentsOf: file, encoding: .utf8).contains("Task.sleep"), "\(file.lastPathComponent)")
    }
  }

  @Test(
    "the pure floors import no database, network, clock or randomness",
    arguments: ["KeepsakeArchive", "KeepsakeInspection", "KeepsakeInterchange", "KeepsakeReplication"])
  func pureFloorsStayPure(target: String) throws {
    for file in try Self.sources(of: target) {
      for module in try Self.imports(in: file) {
        let isAllowed = Self.pureImports.union(Self.furtherImports[target] ?? []).contains(module)
        #expect(isAllowed, "\(file.lastPathComponent) imports \(module)")
      }
      for (number, line) in try String(contentsOf: file, encoding: .utf8).split(
        separator: "\n", omittingEmptySubsequences: false
      )
      .enumerated() {
        let code = line.split(separator: "//", maxSplits: 1, omittingEmptySubsequences: false)[0]
        for word in Self.impureWords where code.contains(word) {
          Issue.record("\(file.lastPathComponent):\(number + 1) reaches for \(word)")
        }
      }
    }
  }
}
