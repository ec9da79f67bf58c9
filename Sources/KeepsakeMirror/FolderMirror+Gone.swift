/// Folders that are gone as a whole, which deletes no save.
extension FolderMirror {
  /// Takes the files of named folders that are gone for files that were never placed here, so that this run or a later
  /// one writes them again, and what a program makes there meanwhile replaces none of them. A file that is there in a
  /// folder that was made anew is a change of the one that was there before.
  ///
  /// - Parameter everything: Whether the mirrored folder itself was gone, and is a new one.
  /// - Returns: How many files come back.
  /// - Throws: `MirrorError`, `StoreError`.
  package func bringBackGone(everything: Bool) throws -> Int {
    var forgotten: [SavePath] = []
    var gone: [[String]: Bool] = [:]
    for (path, entry) in placed.entries where entry.hash != nil {
      let components = path.components
      guard folder.selection.takes(components) else { continue }
      if !everything {
        guard let named = folder.selection.namedFolder(of: components) else { continue }
        let isGone = try gone[named] ?? folder.lacksFolder(named)
        gone[named] = isGone
        guard isGone else { continue }
      }
      if hasFile(at: path) {
        // The program has made it anew: its change to what was there.
        var changed = entry
        (changed.hash, changed.signature) = (nil, nil)
        try placed.record(changed, at: path)
        doubt([path])
      } else {
        forgotten.append(path)
      }
    }
    try placed.forget(forgotten)
    doubt(forgotten)
    return forgotten.count
  }

  /// Whether the named folder that the file was in is gone as a whole: uninstalled, moved, not mounted. That deletes no
  /// save.
  func isInGoneFolder(_ path: SavePath) throws -> Bool {
    guard let named = folder.selection.namedFolder(of: path.components) else { return false }
    return try folder.lacksFolder(named)
  }
}
