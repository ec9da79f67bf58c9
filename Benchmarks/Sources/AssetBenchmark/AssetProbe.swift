import BenchmarkKit
import Foundation
import Keepsake

/// One way of loading all assets, in a process of its own, whose peak of memory is its own as well.
enum AssetWay: String, CaseIterable, Codable {
  /// A batch of all of them, with a budget of a tenth of their bytes.
  case library
  /// `Data(contentsOf:)`, one by one, each let go of before the next. Nothing is compared.
  case files
  /// The same, each hashed with SHA-256 as the library does.
  case hashed

  var title: String {
    switch self {
    case .library: "AssetLibrary, budget of a tenth"
    case .files: "Data(contentsOf:), one by one"
    case .hashed: "Data(contentsOf:) and SHA-256, one by one"
    }
  }
}

/// What a probe prints.
struct AssetProbeResult: Codable {
  var seconds: Double
  /// Above what was held before, the library and its manifest included; nil where the system doesn't tell.
  var extraBytes: Int?
}

struct AssetProbe {
  let way: AssetWay
  let maker: AssetFolderMaker

  /// `WAY:COUNT:FOLDER`
  init(_ text: String) throws {
    let parts = text.split(separator: ":", maxSplits: 2).map(String.init)
    guard parts.count == 3, let way = AssetWay(rawValue: parts[0]), let count = Int(parts[1]) else {
      throw UsageError(message: "There is no probe \(text)")
    }
    self.way = way
    maker = AssetFolderMaker(url: URL(filePath: parts[2], directoryHint: .isDirectory), count: count)
  }

  func run() throws {
    let clock = ContinuousClock()
    let paths = maker.paths
    func time() throws -> Double {
      let start = clock.now
      let bytes = try load(paths)
      try BenchmarkError.require(bytes == maker.bytesInAll, "Not all assets were loaded")
      return (clock.now - start) / .seconds(1)
    }
    #if os(Linux)
    let (seconds, extra): (Double, Int?) = try PeakMemory.measure(time)
    #else
    let (seconds, extra): (Double, Int?) = (try time(), nil)
    #endif
    FileHandle.standardOutput.write(try JSONEncoder().encode(AssetProbeResult(seconds: seconds, extraBytes: extra)))
  }

  private func load(_ paths: [String]) throws -> Int {
    switch way {
    case .library:
      let assets = try AssetLibrary(at: maker.url, budget: maker.bytesInAll / 10)
      let batch = assets.load(paths, pinned: false)
      try batch.wait(within: .seconds(600))
      return Int(batch.progress.bytesDone)
    case .files: return try paths.reduce(0) { try $0 + Data(contentsOf: maker.url.appending(path: $1)).count }
    case .hashed:
      var hashes: Set<ContentHash> = []
      return try paths.reduce(0) { sum, path in
        let data = try Data(contentsOf: maker.url.appending(path: path))
        hashes.insert(ContentHash(of: data))
        return sum + data.count
      }
    }
  }
}
