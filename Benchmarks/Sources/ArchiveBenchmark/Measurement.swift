/// What one task of one group took.
struct Measurement: Codable {
  let group: String
  /// Who did it: "Keepsake", "JSON" and so on.
  let encoder: String
  /// What was done: "encode", "decode" and so on.
  let action: String
  let bestMicroseconds: Double
  let medianMicroseconds: Double
  let samples: Int
  /// Of what was written or read.
  let bytes: Int?
  /// Of the same under zstd, level 1.
  let zstdBytes: Int?
}

/// How much memory one process took beyond what it held before.
struct MemoryFigure: Codable {
  let name: String
  /// The value in memory, and the archive.
  let valueBytes: Int?
  let archiveBytes: Int
  let extraBytes: Int
}

/// All figures of a run.
struct Figures: Codable {
  var machine: String
  var rounds: Int
  var measurements: [Measurement] = []
  var memory: [MemoryFigure] = []
  /// What a reader should know: peers that were left out, and why.
  var remarks: [String] = []

  func measurement(_ group: String, _ encoder: String, _ action: String) -> Measurement? {
    measurements.first { $0.group == group && $0.encoder == encoder && $0.action == action }
  }

  /// How many times as long as the first the second takes, best rounds of both.
  func ratio(_ group: String, _ action: String, of first: String, to second: String) -> Double? {
    guard let one = measurement(group, first, action), let other = measurement(group, second, action) else {
      return nil
    }
    return other.bestMicroseconds / one.bestMicroseconds
  }
}
