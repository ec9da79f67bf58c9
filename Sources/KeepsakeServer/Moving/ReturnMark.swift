#if Cloud
import Foundation

/// A file in a data folder into which a cloud is being moved: no server begins one there meanwhile. It also tells the
/// folder from any other one of the same path, on another machine, and what was copied into it from what another
/// database was to send.
struct ReturnMark: Equatable, Sendable {
  static let fileName = "moving-id"

  /// Made for this move; the database has it, too.
  var id: Data
  /// Where the cloud comes from, without a password.
  var origin: String

  private static func url(_ data: URL) -> URL { data.appendingPathComponent(fileName) }

  /// Returns the mark of a data folder; nil if there is none.
  static func read(_ data: URL) throws -> ReturnMark? {
    let url = url(data)
    guard let bytes = try PrivateFile.read(url) else { return nil }
    let text = String(decoding: bytes, as: UTF8.self)
    let lines = text.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
    guard lines.count == 2, let id = Data(base64Encoded: String(lines[0])), id.count == 16, lines[1].last == "\n" else {
      throw ServerError(.damaged, "\(url.path) doesn't say which cloud is being moved into the folder.")
    }
    return ReturnMark(id: id, origin: String(lines[1].dropLast()))
  }

  /// Puts the mark into a data folder, on the disk.
  func write(_ data: URL) throws {
    try PrivateFile.write(Data("\(id.base64EncodedString())\n\(origin)\n".utf8), to: Self.url(data))
  }

  static func remove(_ data: URL) throws {
    let url = url(data)
    do {
      try FileManager.default.removeItem(at: url)
    } catch CocoaError.fileNoSuchFile, CocoaError.fileReadNoSuchFile {
      // There was none.
    } catch {
      throw ServerError(.inputOutput, "\(url.path) can't be removed.", cause: error)
    }
  }
}
#endif
