import Foundation
import Keepsake
import KeepsakeSimulation
import Synchronization
import TestSupport
import Testing

/// A folder of assets as a game ships it, generated from a seed, with its manifest.
struct AssetWorld {
  static let seed: UInt64 = 2026
  let folder: TemporaryFolder
  /// The bytes of each asset.
  let bytes: [String: Data]

  var url: URL { folder.url }
  var manifest: URL { url.appendingPathComponent(AssetManifest.fileName) }

  /// - Parameter sizes: Of each asset, by its path.
  init(_ sizes: [String: Int]) throws {
    folder = try TemporaryFolder()
    var random = SeededGenerator(seed: Self.seed)
    var bytes: [String: Data] = [:]
    for (path, size) in sizes.sorted(by: { $0.key < $1.key }) {
      bytes[path] = Data((0..<size).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    }
    self.bytes = bytes
    for (path, data) in bytes { try write(data, to: path) }
    try makeManifest()
  }

  func file(_ path: String) -> URL { url.appendingPathComponent(path) }

  /// Writes a file with a date before the manifest's, as packed files have, or after it.
  func write(_ data: Data, to path: String, isNewer: Bool = false) throws {
    try FileManager.default.createDirectory(
      at: file(path).deletingLastPathComponent(), withIntermediateDirectories: true)
    try data.write(to: file(path))
    let date = Date(timeIntervalSince1970: isNewer ? 3_000_000_000 : 1_000_000_000)
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: file(path).path)
  }

  func makeManifest() throws {
    try AssetManifest.make(of: url, output: manifest, onProgress: { _ in }).manifest.write(to: manifest)
  }
}

/// Records the order of reads, and blocks the given ones until they are let through.
final class ReadGate: @unchecked Sendable {
  // Unchecked: guarded by the condition.
  private let condition = NSCondition()
  private var held: Set<String>
  private var noted: [String] = []

  init(holding held: Set<String> = []) { self.held = held }

  /// Every read so far, in the order in which they began.
  var reads: [String] { condition.withLock { noted } }

  /// Called before a read, on the thread that reads.
  func pass(_ path: String) {
    condition.withLock {
      noted.append(path)
      condition.broadcast()
      while held.contains(path) { condition.wait() }
    }
  }

  func open(_ path: String) {
    condition.withLock {
      held.remove(path)
      condition.broadcast()
    }
  }

  /// Blocks until the reads of these paths have begun. Only for a test's own threads.
  func waitFor(_ paths: Set<String>) {
    condition.withLock {
      while !paths.isSubset(of: noted) { condition.wait() }
    }
  }
}

/// The largest number that any thread recorded.
final class Peak: Sendable {
  private let largest = Mutex(0)

  var value: Int { largest.withLock { $0 } }

  func note(_ number: Int) { largest.withLock { $0 = max($0, number) } }
}

func assetErrorCode(_ body: () throws -> Void) -> AssetError.Code? {
  do {
    try body()
    return nil
  } catch let error as AssetError {
    return error.code
  } catch {
    Issue.record("another error: \(error)")
    return nil
  }
}
