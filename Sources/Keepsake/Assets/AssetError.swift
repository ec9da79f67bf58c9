/// Why an asset, or all of them, can't be had.
///
/// A game answers the codes in different ways: `missing`, `damaged` and `stale` mean that the installation has to be mended, `unknown`
/// and `refusedPath` that the game asks for the wrong thing, `overBudget` that it wants to hold too much at once.
public struct AssetError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What kind of failure it is: what a program branches on.
  public enum Code: String, Sendable, Hashable, CaseIterable, Codable {
    /// The path can't name an asset: it leads out of the folder, or isn't one plain name on every platform.
    case refusedPath
    /// The manifest has no such asset.
    case unknown
    /// The manifest has it, and the file isn't there.
    case missing
    /// The file isn't the one that the manifest means, and hasn't been changed since that was made: it was cut off, or the disk lies.
    case damaged
    /// The file isn't the one that the manifest means, and was changed after that was made.
    case stale
    /// The file is there and can't be read, or isn't a plain file in plain folders.
    case unreadable
    /// It doesn't fit into the memory budget beside what is pinned.
    case overBudget
    /// The batch was cancelled.
    case cancelled
    /// The time given was not enough; loading goes on.
    case timedOut
    /// There is no manifest.
    case noManifest
    /// The manifest isn't what the command wrote, or holds what no manifest may hold.
    case damagedManifest
    /// A newer release of Keepsake wrote the manifest.
    case newerManifest
    /// A limit was passed: too many files, or one that is too large.
    case tooLarge
    /// The call itself is wrong.
    case misuse
  }

  /// What kind of failure it is.
  public var code: Code
  /// A sentence that a person can act on.
  public var message: String
  /// The asset that it is about, if it is about one.
  public var path: String?

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - code: What kind of failure it is.
  ///   - message: A sentence that a person can act on.
  ///   - path: The asset that the error is about, if it is about one.
  public init(_ code: Code, _ message: String, path: String? = nil) {
    self.code = code
    self.message = message
    self.path = path
  }

  public var description: String { "\(message) [\(code.rawValue)]" }
}
