import BenchmarkKit
import Foundation
import Keepsake

/// The assets of the benchmark: files of a few kilobytes up to some hundred, as a game's images and sounds are, the
/// same in each run.
struct AssetFolderMaker {
  let url: URL
  let count: Int

  /// From 4 KiB to 76 KiB, 40 KiB on average.
  static func size(of number: Int) -> Int { (4 << 10) + number * 7_919 % (72 << 10) }

  static func path(of number: Int) -> String { "Images/Set\(number % 50)/Image\(number).png" }

  var paths: [String] { (0..<count).map(Self.path) }

  var bytesInAll: Int { (0..<count).reduce(0) { $0 + Self.size(of: $1) } }

  /// Writes the files, and their manifest as docs/FORMAT.md has it.
  func make() throws {
    for folder in 0..<50 {
      try FileManager.default.createDirectory(
        at: url.appending(path: "Images/Set\(folder)"), withIntermediateDirectories: true)
    }
    var word: UInt64 = 2026
    var assets: [(path: String, size: Int, hash: ContentHash)] = []
    for number in 0..<count {
      let size = Self.size(of: number)
      var data = Data(capacity: size + 8)
      while data.count < size {
        word = word &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        withUnsafeBytes(of: word) { data.append(contentsOf: $0) }
      }
      data = data.prefix(size)
      try data.write(to: url.appending(path: Self.path(of: number)))
      assets.append((Self.path(of: number), size, ContentHash(of: data)))
    }
    assets.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
    let lines = assets.map { "\($0.hash) \($0.size) \($0.path)\n" }.joined()
    let list = assets.map { "{\"path\":\"\($0.path)\",\"sha256\":\"\($0.hash)\",\"size\":\($0.size)}" }.joined(
      separator: ",\n")
    let text = "{\"format\":1,\"checksum\":\"\(ContentHash(of: Data(lines.utf8)))\",\"assets\":[\(list)]}\n"
    try Data(text.utf8).write(to: url.appending(path: "keepsake-assets.json"))
  }
}
