/// How far a batch of assets, or a check of them, has come.
public struct AssetProgress: Sendable, Hashable {
  /// Bytes read so far, of files that are being read as well.
  public var bytesDone: Int64
  /// Bytes in all.
  public var bytesInAll: Int64
  /// Files that are done.
  public var filesDone: Int
  /// Files in all.
  public var filesInAll: Int

  /// From 0 to 1, by bytes; by files where all of them are empty. It is 1 only when everything is loaded: what failed never counts.
  public var fraction: Double {
    if bytesInAll > 0 { return filesDone == filesInAll ? 1 : min(Double(bytesDone) / Double(bytesInAll), 0.999) }
    return filesInAll > 0 ? Double(filesDone) / Double(filesInAll) : 1
  }
}

/// What is loaded first. Within one priority whoever asked first is first.
public enum AssetPriority: Int, Sendable, Hashable, Comparable, CaseIterable {
  /// What may be wanted later: the next level.
  case low
  /// What is needed soon. The default.
  case normal
  /// What the player waits for.
  case high

  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
