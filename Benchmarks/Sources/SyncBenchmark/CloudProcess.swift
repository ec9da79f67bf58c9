import BenchmarkKit
import Foundation

/// A cloud of its own, or one of the servers over a database: `keepsake serve` as a process, on this machine only.
final class CloudProcess: Sendable {
  private struct Hello: Decodable {
    var url: URL
    var appKeys: [String]
  }
  private let process: Process
  let url: URL
  let appKey: String
  var port: Int { url.port ?? 0 }

  /// - Parameter database: The address of a PostgreSQL database; nil for a cloud in `data`.
  init(keepsake: String, data: URL, database: String? = nil) throws {
    let process = Process()
    self.process = process
    process.executableURL = URL(filePath: keepsake)
    process.arguments =
      ["serve", "--data", data.path, "--port", "0", "--json"] + (database.map { ["--database", $0] } ?? [])
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    var line = Data()
    // One line, which says where it is; it comes as one piece.
    while !line.contains(0x0A) {
      let piece = output.fileHandleForReading.availableData
      try BenchmarkError.require(!piece.isEmpty, "\(keepsake) serve ended before it said where it is")
      line += piece
    }
    let hello = try JSONDecoder().decode(Hello.self, from: line.prefix { $0 != 0x0A })
    guard let key = hello.appKeys.first else { throw BenchmarkError(message: "The cloud has no key for games") }
    (url, appKey) = (hello.url, key)
  }

  func stop() {
    process.terminate()
    process.waitUntilExit()
  }
}
