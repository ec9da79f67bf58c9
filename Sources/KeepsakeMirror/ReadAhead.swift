import Foundation

/// Files that were read when they were first seen, so that the time in which they have to stay unchanged isn't spent
/// waiting. What was read counts only if the file has the same signature once it has settled.
struct ReadAhead {
  /// The largest file that is read ahead, and the memory of all: the rest is read once it has settled.
  static let maximumFileBytes = 64 << 10
  static let maximumMemory: Int64 = 8 << 20
  /// What a file takes besides its bytes, roughly.
  static let overhead: Int64 = 256

  /// A file that was changed more recently than this isn't read ahead, in milliseconds. Two changes within one tick of
  /// the file system's clock, which is 2 s on some, leave the same signature: the bytes between them must not count.
  var leastAge: Int64 = 3_000

  private var files: [SavePath: (signature: FileSignature, bytes: Data)] = [:]
  private var memory: Int64 = 0

  init() {}

  var paths: Set<SavePath> { Set(files.keys) }

  /// Returns whether a file is to be read ahead.
  ///
  /// - Parameter now: The time of day by the system's clock, which files' times are of, in milliseconds.
  func takes(_ path: SavePath, _ signature: FileSignature, now: Int64) -> Bool {
    guard signature.size <= Self.maximumFileBytes, memory + cost(signature.size) <= Self.maximumMemory else {
      return false
    }
    let changed = max(signature.modifiedNanoseconds, signature.changedNanoseconds) / 1_000_000
    return now - changed >= leastAge && files[path]?.signature != signature
  }

  mutating func keep(_ bytes: Data, of path: SavePath, _ signature: FileSignature) {
    forget(path)
    files[path] = (signature, bytes)
    memory += cost(Int64(bytes.count))
  }

  /// Returns what was read of a file, if the file is still the same, and forgets it.
  mutating func take(_ path: SavePath, _ signature: FileSignature) -> Data? {
    let known = files[path]
    forget(path)
    return known?.signature == signature ? known?.bytes : nil
  }

  /// Forgets all files but these.
  mutating func keepOnly(_ paths: Set<SavePath>) {
    for path in files.keys where !paths.contains(path) { forget(path) }
  }

  private mutating func forget(_ path: SavePath) {
    guard let known = files.removeValue(forKey: path) else { return }
    memory -= cost(Int64(known.bytes.count))
  }

  private func cost(_ size: Int64) -> Int64 { size + Self.overhead }
}
