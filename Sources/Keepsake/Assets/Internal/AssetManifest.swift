import Crypto
package import Foundation
package import KeepsakeReplication
import KeepsakeStore

/// The list of a game's assets: path, size and SHA-256 of each, as `keepsake assets manifest` writes them
/// (docs/FORMAT.md).
package struct AssetManifest: Sendable, Hashable {
  /// One asset.
  package struct Entry: Sendable, Hashable {
    package let path: String
    package let size: Int
    /// Nil in a library without a manifest, which knows only what is on the disk.
    package let hash: ContentHash?
  }

  /// The name of the manifest's file in the folder.
  package static let fileName = "keepsake-assets.json"
  package static let format = 1
  /// Enough for `maximumAssets` entries of some 200 bytes, more than twice over. A larger file is no manifest, and
  /// isn't read.
  static let maximumFileBytes = 128 << 20
  /// More files than any game ships individually; limits memory and the duration of a check.
  static let maximumAssets = 200_000
  /// The largest size that one `Data` can have on every platform.
  static let maximumAssetBytes = Int(Int32.max)

  /// Sorted by the bytes of their paths, without duplicates.
  package let entries: [Entry]

  package var bytesInAll: Int64 { entries.reduce(0) { $0 + Int64($1.size) } }

  /// Makes a manifest of entries in any order.
  ///
  /// Throws `tooLarge` for too many entries; `damagedManifest` for invalid paths, for two paths that are the same file
  /// on some system, and for invalid sizes.
  init(_ entries: [Entry]) throws(AssetError) {
    guard entries.count <= Self.maximumAssets else {
      throw AssetError(
        .tooLarge,
        "there are \(entries.count) assets, but at most \(Self.maximumAssets) are allowed; pack some together")
    }
    var names = AssetNames()
    for entry in entries {
      let (path, reason) = AssetPath.exact(entry.path)
      guard let path else {
        throw Self.damaged("the path \(AssetPath.shown(entry.path)) is invalid: \(reason)", path: entry.path)
      }
      guard (0...Self.maximumAssetBytes).contains(entry.size) else {
        throw Self.damaged("the size \(entry.size) of \(AssetPath.shown(entry.path)) is invalid", path: entry.path)
      }
      if let other = names.add(path) {
        throw Self.damaged(
          entry.path == other
            ? "\(AssetPath.shown(entry.path)) is listed twice"
            : "\(AssetPath.shown(entry.path)) and \(AssetPath.shown(other)) are the same file where names ignore case",
          path: entry.path)
      }
    }
    self.entries = entries.sorted { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
  }

  // MARK: The file

  /// The contents of the file, as they are written and read.
  private struct File: Decodable {
    struct Asset: Codable {
      var path: String
      var sha256: String
      var size: Int
    }
    enum Key: String, CodingKey { case format, checksum, assets }

    var checksum: String
    var assets: [Asset]

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      let format = try container.decode(Int.self, forKey: .format)
      guard format <= AssetManifest.format else {
        throw AssetError(
          .newerManifest,
          """
          the manifest of the assets has format \(format), but this program reads \(AssetManifest.format): update the \
          game
          """)
      }
      guard format == AssetManifest.format else { throw AssetManifest.damaged("there is no format \(format)") }
      checksum = try container.decode(String.self, forKey: .checksum)
      assets = try container.decode([Asset].self, forKey: .assets)
    }
  }

  /// Reads a manifest.
  ///
  /// Throws `noManifest`, `damagedManifest`, `newerManifest` or `unreadable`.
  package init(contentsOf url: URL) throws(AssetError) {
    let bytes: Data?
    do {
      bytes = try AtomicFile.read(url, maximumBytes: Self.maximumFileBytes)
    } catch let error as StoreError where error.code == .tooLarge {
      throw Self.damaged("it has more than \(Self.maximumFileBytes >> 20) MiB")
    } catch {
      throw AssetError(
        .unreadable,
        "the manifest \(url.path) can't be read: \((error as? StoreError)?.message ?? ErrorReason.text(error))")
    }
    guard let bytes else {
      throw AssetError(
        .noManifest,
        """
        there is no manifest at \(url.path): create one with `keepsake assets manifest \
        \(url.deletingLastPathComponent().path)`
        """)
    }
    try self.init(decoding: bytes)
  }

  /// Decodes the bytes that `encoded()` returns.
  package init(decoding bytes: Data) throws(AssetError) {
    let file: File
    do {
      file = try JSONDecoder().decode(File.self, from: bytes)
    } catch let error as AssetError {
      throw error
    } catch {
      throw Self.damaged("it isn't the JSON of a manifest (\(Self.place(of: error)))")
    }
    guard file.assets.count <= Self.maximumAssets else {
      throw Self.damaged("it lists \(file.assets.count) assets, but at most \(Self.maximumAssets) are allowed")
    }
    var entries: [Entry] = []
    entries.reserveCapacity(file.assets.count)
    for asset in file.assets {
      guard let hash = ContentHash(asset.sha256) else {
        throw Self.damaged("the hash of \(AssetPath.shown(asset.path)) isn't 64 hexadecimal digits", path: asset.path)
      }
      entries.append(Entry(path: asset.path, size: asset.size, hash: hash))
    }
    try self.init(entries)
    // Checked last, so that an invalid entry is named even if the checksum is right, and a single wrong digit is
    // detected in any case.
    guard file.checksum == checksum.description else {
      throw Self.damaged("it was changed after it was made (its checksum differs)")
    }
  }

  /// Returns the file's bytes: JSON with one asset per line. Equal assets give equal bytes.
  package func encoded() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    var data = Data("{\n  \"format\": \(Self.format),\n  \"checksum\": \"\(checksum)\",\n  \"assets\": [".utf8)
    for (number, entry) in entries.enumerated() {
      guard let hash = entry.hash else { throw AssetError(.misuse, "a manifest needs the hashes of its assets") }
      data.append(contentsOf: (number == 0 ? "\n    " : ",\n    ").utf8)
      data.append(try encoder.encode(File.Asset(path: entry.path, sha256: hash.description, size: entry.size)))
    }
    data.append(contentsOf: (entries.isEmpty ? "]\n}\n" : "\n  ]\n}\n").utf8)
    return data
  }

  /// The SHA-256 of each asset's hash, size and path, one line per asset. It detects damage, not forgery: anyone who
  /// changes the list can compute it again.
  private var checksum: ContentHash {
    var hash = SHA256()
    for entry in entries {
      let line = "\(entry.hash?.description ?? "-") \(entry.size) \(entry.path)\n"
      hash.update(data: Data(line.utf8))
    }
    return ContentHash(digest: hash.finalize())
  }

  private static func damaged(_ what: String, path: String? = nil) -> AssetError {
    AssetError(
      .damagedManifest,
      "the manifest of the assets is damaged: \(what). Install the game again, or create the manifest again", path: path
    )
  }

  /// Returns where in the JSON an error is, without quoting the bytes around it: they come from somebody else.
  private static func place(of error: any Error) -> String {
    guard let error = error as? DecodingError else { return "unreadable" }
    let context: DecodingError.Context
    switch error {
    case .typeMismatch(_, let found), .valueNotFound(_, let found), .dataCorrupted(let found): context = found
    case .keyNotFound(let key, let found):
      return "no \"\(key.stringValue)\" at \(text(found.codingPath))"
    @unknown default: return "unreadable"
    }
    return "at \(text(context.codingPath))"
  }

  private static func text(_ path: [any CodingKey]) -> String {
    path.isEmpty ? "the top" : path.map { $0.intValue.map { "[\($0)]" } ?? $0.stringValue }.joined(separator: ".")
  }
}

/// Detects names that are the same on some system: letters that differ only in case, including those of folders, and a
/// file that is also a folder.
struct AssetNames {
  /// Each path, and each folder on the way to one, by its case-folded form.
  private var known: [String: (text: String, isFile: Bool)] = [:]

  /// Adds a path. Returns the path that it conflicts with; nil if there is none.
  mutating func add(_ path: AssetPath) -> String? {
    var way = ""
    let parts = path.parts
    for (place, part) in parts.enumerated() {
      way += place == 0 ? part : "/" + part
      let isFile = place == parts.count - 1
      let folded = AssetPath.folded(way)
      if let other = known[folded] {
        if isFile || other.isFile || other.text != way { return other.text }
      } else {
        known[folded] = (way, isFile)
      }
    }
    return nil
  }
}
