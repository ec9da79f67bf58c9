public import Foundation

/// Why an asset, or all assets, can't be loaded.
///
/// A game reacts to the codes differently: `missing`, `damaged` and `stale` mean that the installation must be
/// repaired, `unknown` and `refusedPath` that the game asks for the wrong asset, `overBudget` that it asks for too much
/// at once.
public struct AssetError: LocalizedError, Sendable, Hashable, CustomStringConvertible {
  /// The kind of failure, for a program to branch on.
  public enum Code: String, Sendable, Hashable, CaseIterable, Codable {
    /// The path can't name an asset: it leads out of the folder, or isn't valid on every platform.
    case refusedPath
    /// The manifest has no such asset.
    case unknown
    /// The manifest has the asset, but the file doesn't exist.
    case missing
    /// The file differs from the manifest and hasn't been modified since the manifest was made: it was truncated, or
    /// the disk failed.
    case damaged
    /// The file differs from the manifest and was modified after the manifest was made.
    case stale
    /// The file can't be read, or isn't a regular file in ordinary folders.
    case unreadable
    /// The asset doesn't fit into the memory budget beside what is pinned.
    case overBudget
    /// The batch was cancelled.
    case cancelled
    /// The time limit has passed. Loading continues.
    case timedOut
    /// There is no manifest.
    case noManifest
    /// The manifest isn't as the command wrote it, or has invalid entries.
    case damagedManifest
    /// A newer release of Keepsake wrote the manifest.
    case newerManifest
    /// A limit was exceeded: there are too many files, or one is too large.
    case tooLarge
    /// The call is invalid.
    case misuse
  }

  /// The kind of failure.
  public var code: Code
  /// A sentence for people that explains what they can do.
  public var message: String
  /// The asset concerned, if there is one.
  public var path: String?

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - code: The kind of failure.
  ///   - message: A sentence that a person can act on.
  ///   - path: The asset concerned, if there is one.
  public init(_ code: Code, _ message: String, path: String? = nil) {
    self.code = code
    self.message = message
    self.path = path
  }

  public var description: String { "\(message) [\(code.rawValue)]" }

  public var errorDescription: String? { message }
}
