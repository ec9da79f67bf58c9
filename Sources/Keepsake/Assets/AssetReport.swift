public import Foundation
import KeepsakeReplication

/// The result of comparing a game's assets with their manifest.
///
/// ```swift
/// let report = try game.assets.check()
/// guard report.isSound else { print(report); exit(1) }
/// ```
///
/// It is an `Error`, so a game can throw it.
public struct AssetReport: LocalizedError, Sendable, Hashable, Codable, CustomStringConvertible {
  /// The kind of problem with a file.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// The manifest has it, but the file doesn't exist.
    case missing
    /// Its size or contents differ from the manifest.
    case damaged
    /// As `damaged`, and the file was modified after the manifest was made.
    case stale
    /// The file can't be read, or isn't a regular file in ordinary folders.
    case unreadable
    /// The file isn't in the manifest. Nothing loads it.
    case extra
  }

  /// A problem with one file.
  public struct Finding: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The kind of problem.
    public var kind: Kind
    /// The file's path in the folder, unescaped; `message` is safe to print.
    public var path: String
    /// A sentence for people that explains what they can do.
    public var message: String

    public var description: String { message }
  }

  /// All findings, sorted by path.
  public var findings: [Finding]
  /// The number of assets in the manifest.
  public var assets: Int
  /// The number of assets that were hashed; for the others, only the size was compared.
  public var hashed: Int

  /// Whether every asset matches the manifest. Extra files don't count.
  public var isSound: Bool { findings.allSatisfy { $0.kind == .extra } }

  /// Returns the findings of one kind.
  ///
  /// - Parameter kind: The kind.
  /// - Returns: The findings, sorted by path.
  public func findings(_ kind: Kind) -> [Finding] { findings.filter { $0.kind == kind } }

  /// Throws this report unless it is sound.
  ///
  /// - Throws: This report, an `AssetReport`.
  public func throwIfUnsound() throws {
    if !isSound { throw self }
  }

  /// One line for the result, and one for each finding.
  public var description: String {
    let counts = Kind.allCases.compactMap { kind in
      let count = findings.count { $0.kind == kind }
      return count > 0 ? "\(count) \(kind.rawValue)" : nil
    }
    let head = CountText.of(assets, "asset") + ": " + (counts.isEmpty ? "all sound" : counts.joined(separator: ", "))
    return ([head] + findings.map(\.message)).joined(separator: "\n")
  }

  public var errorDescription: String? { description }
}
