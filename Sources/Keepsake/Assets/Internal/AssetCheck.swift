import Foundation

/// Compares a folder of assets with its manifest.
struct AssetCheck {
  private let source: AssetSource
  private let check: AssetLibrary.Check
  private var findings: [AssetReport.Finding] = []
  private var hashed = 0

  init(_ source: AssetSource, _ check: AssetLibrary.Check) {
    self.source = source
    self.check = check
  }

  func run(isCancelled: () -> Bool, _ onProgress: (AssetProgress) -> Void) throws -> AssetReport {
    var run = self
    return try run.perform(isCancelled, onProgress)
  }

  private mutating func perform(_ isCancelled: () -> Bool, _ onProgress: (AssetProgress) -> Void) throws -> AssetReport
  {
    let source = source
    let listing = try source.folder.scan(leavingOut: source.manifestPath)
    var found = Dictionary(uniqueKeysWithValues: listing.files.map { ($0.path.text, $0.status) })
    var toHash: [Int] = []
    for (number, entry) in source.entries.enumerated() {
      guard let status = found.removeValue(forKey: entry.path) else {
        // Opening the file reports the reason: it doesn't exist, or isn't a regular file.
        note(number) { () throws(AssetError) in _ = try source.open(number) }
        continue
      }
      if status.size != entry.size {
        note(number) { () throws(AssetError) in throw source.otherSize(status, number) }
      } else if entry.hash != nil, check == .full || source.isNewer(status) {
        toHash.append(number)
      }
    }
    var progress = AssetProgress(
      bytesDone: 0, bytesInAll: toHash.reduce(0) { $0 + Int64(source.entries[$1].size) }, filesDone: 0,
      filesInAll: toHash.count)
    onProgress(progress)
    for number in toHash {
      if isCancelled() { throw CancellationError() }
      let before = progress.bytesDone
      note(number) { () throws(AssetError) in
        try source.verify(number) { done in
          progress.bytesDone = before + Int64(done)
          onProgress(progress)
        }
      }
      hashed += 1
      progress.filesDone += 1
      progress.bytesDone = before + Int64(source.entries[number].size)
      onProgress(progress)
    }
    // Without a manifest, only files that were added since the library was opened are extra.
    for path in found.keys {
      let shown = AssetPath.shown(path)
      findings.append(
        AssetReport.Finding(
          kind: .extra, path: path, message: "the file \(shown) isn't in the list of assets, and is never loaded"))
    }
    // A path that is also in the manifest was reported above.
    for (path, reason) in listing.refused where source.known(path) == nil {
      let shown = AssetPath.shown(path)
      findings.append(AssetReport.Finding(kind: .extra, path: path, message: "\(shown) can't be an asset: \(reason)"))
    }
    findings.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
    return AssetReport(findings: findings, assets: source.entries.count, hashed: hashed)
  }

  private mutating func note(_ number: Int, _ body: () throws(AssetError) -> Void) {
    do throws(AssetError) {
      try body()
    } catch {
      let kind: AssetReport.Kind =
        switch error.code {
        case .missing: .missing
        case .stale: .stale
        case .damaged: .damaged
        default: .unreadable
        }
      findings.append(AssetReport.Finding(kind: kind, path: source.entries[number].path, message: error.message))
    }
  }
}
