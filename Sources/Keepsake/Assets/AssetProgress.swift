/// The progress of a batch of assets, or of a check.
public struct AssetProgress: Sendable, Hashable {
  /// Bytes read so far, including those of files that are being read.
  public var bytesDone: Int64
  /// The total number of bytes.
  public var bytesInAll: Int64
  /// Files that are finished.
  public var filesDone: Int
  /// The total number of files.
  public var filesInAll: Int

  /// The progress from 0 to 1, by bytes, or by files if all are empty. It is 1 only if everything is loaded: failed
  /// assets never count.
  public var fraction: Double {
    if bytesInAll > 0 { return filesDone == filesInAll ? 1 : min(Double(bytesDone) / Double(bytesInAll), 0.999) }
    return filesInAll > 0 ? Double(filesDone) / Double(filesInAll) : 1
  }
}

/// The order of loading. Requests of the same priority are served in the order in which they were made.
public enum AssetPriority: Int, Sendable, Hashable, Comparable, CaseIterable {
  /// For later, such as the next level.
  case low
  /// For what is needed soon. The default.
  case normal
  /// For what the player waits for.
  case high

  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
