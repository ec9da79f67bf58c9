/// What was found when a game's assets were compared with their manifest: everything at once, before play.
///
///     let report = try game.assets.check()
///     guard report.isSound else { print(report); exit(1) }
///
/// It is an `Error`, so that a game can throw it as it is.
public struct AssetReport: Error, Sendable, Hashable, Codable, CustomStringConvertible {
  /// What is wrong with one file.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// The manifest has it, and it isn't there.
    case missing
    /// Its size or its bytes aren't those of the manifest.
    case damaged
    /// The same, and it was changed after the manifest was made.
    case stale
    /// It is there and can't be read, or isn't a plain file in plain folders.
    case unreadable
    /// It is there and the manifest doesn't have it. Nothing loads it, so it does no harm.
    case extra
  }

  /// One file, and what is wrong with it.
  public struct Finding: Sendable, Hashable, Codable, CustomStringConvertible {
    /// What is wrong.
    public var kind: Kind
    /// The file's path in the folder, as it is; the message is safe to print.
    public var path: String
    /// A sentence that a person can act on.
    public var message: String

    public var description: String { message }
  }

  /// Everything that was found, sorted by path.
  public var findings: [Finding]
  /// How many assets the manifest has.
  public var assets: Int
  /// How many of them were read and hashed; of the others only the size was compared.
  public var hashed: Int

  /// Whether every asset is there as the manifest has it. Extra files don't count.
  public var isSound: Bool { findings.allSatisfy { $0.kind == .extra } }

  /// What was found of one kind.
  public func findings(_ kind: Kind) -> [Finding] { findings.filter { $0.kind == kind } }

  /// Throws this report unless it is sound.
  public func throwIfUnsound() throws {
    if !isSound { throw self }
  }

  /// A line for the whole, and one for each finding.
  public var description: String {
    let counts = Kind.allCases.compactMap { kind in
      let count = findings.count { $0.kind == kind }
      return count > 0 ? "\(count) \(kind.rawValue)" : nil
    }
    let head = "\(assets) assets: " + (counts.isEmpty ? "all sound" : counts.joined(separator: ", "))
    return ([head] + findings.map(\.message)).joined(separator: "\n")
  }
}
