import Foundation
import KeepsakePlatform

/// Everything in a folder of assets.
struct AssetListing {
  /// Regular files whose paths are valid for an asset, sorted by bytes.
  var files: [(path: AssetPath, status: AssetStatus)] = []
  /// What can't be an asset, with the reason.
  var refused: [(path: String, reason: String)] = []
  /// The number of names that begin with a dot.
  var hidden = 0

  /// Throws `tooLarge` for a file that is too large to be an asset, so that the sum of all sizes stays within 64 bits.
  func refuseTooLarge() throws(AssetError) {
    for (path, status) in files where status.size > AssetManifest.maximumAssetBytes {
      throw AssetError(
        .tooLarge,
        """
        the file \(AssetPath.shown(path.text)) has \(status.size) bytes, but an asset may have at most \
        \(AssetManifest.maximumAssetBytes)
        """,
        path: path.text)
    }
  }
}

extension AssetFolder {
  /// Lists the folder recursively. Costs one status query per entry.
  ///
  /// - Parameter left: A file to leave out: the manifest, if it is in the folder.
  /// - Throws: `AssetError` if the folder can't be listed, or has too many entries. A folder inside it that can't be
  ///   listed is added to `refused`.
  func scan(leavingOut left: AssetPath?) throws(AssetError) -> AssetListing {
    var listing = AssetListing()
    var entries = 0
    // Folders still to be listed: a stack instead of recursion. The results are sorted at the end.
    var folders: [[String]] = [[]]
    while let folder = folders.popLast() {
      do throws(AssetError) {
        try scan(folder, &folders, &entries, leavingOut: left, into: &listing)
      } catch {
        if folder.isEmpty || error.code == .tooLarge { throw error }
        listing.refused.append((folder.joined(separator: "/"), "the folder can't be listed: \(error.message)"))
      }
    }
    listing.files.sort { $0.path.text.utf8.lexicographicallyPrecedes($1.path.text.utf8) }
    listing.refused.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
    return listing
  }

  private func scan(
    _ folder: [String], _ folders: inout [[String]], _ entries: inout Int, leavingOut left: AssetPath?,
    into listing: inout AssetListing
  ) throws(AssetError) {
    let shown = folder.joined(separator: "/")
    let number = try descriptor(of: folder, path: shown)
    defer { SystemCall.closeFile(number) }
    for name in try Self.names(in: number, path: shown, counting: &entries) {
      if name.first == UInt8(ascii: ".") {
        listing.hidden += 1
        continue
      }
      let bytes = Array(shown.utf8) + (folder.isEmpty ? [] : [UInt8(ascii: "/")]) + name
      guard let text = String(validating: bytes, as: UTF8.self), let last = String(validating: name, as: UTF8.self)
      else {
        listing.refused.append((String(decoding: bytes, as: UTF8.self), "its name isn't UTF-8"))
        continue
      }
      guard let status = FileStatus(of: last, in: number) else {
        if errno == ENOENT { continue }
        throw Self.refused(errno, text)
      }
      // Apple's file systems return names in a form of their own, and accept any.
      let own = HostSystem.current.isApple ? text.precomposedStringWithCanonicalMapping : text
      let (path, reason) = AssetPath.exact(own)
      guard let path else {
        listing.refused.append((text, reason))
        continue
      }
      switch status.kind {
      case .file: if path != left { listing.files.append((path, AssetStatus(status))) }
      case .folder: folders.append(folder + [last])
      case .link: listing.refused.append((text, "a symbolic link isn't followed; put the file itself there"))
      case .other: listing.refused.append((text, "it isn't a plain file"))
      }
    }
  }

  /// Returns the names in a folder.
  private static func names(in folder: Int32, path: String, counting entries: inout Int) throws(AssetError) -> [[UInt8]]
  {
    // Listing closes what it lists, so it gets its own.
    let own = SystemCall.openFile(".", in: folder, .folder)
    guard own >= 0 else { throw refused(errno, path) }
    var names: [[UInt8]] = []
    let number = try SystemCall.forEachName(in: own) { name throws(AssetError) in
      entries += 1
      names.append(name)
      guard entries <= AssetManifest.maximumAssets else {
        throw AssetError(
          .tooLarge, "the folder of the assets has more than \(AssetManifest.maximumAssets) entries; pack some together"
        )
      }
    }
    guard number == 0 else { throw refused(number, path) }
    return names
  }
}
