#if Cloud
import ArgumentParser
import Foundation
import KeepsakeStore

/// What a command needs to read the store of a game that seals it.
struct SealOptions: ParsableArguments {
  @Option(
    help: "A file with the secret of the game, byte for byte: for its sealed stores. Signed ones are read without, unchecked.",
    completion: .file())
  var secretFile: String?

  @Option(help: "With --secret-file: the player that the game binds its stores to, if it does.")
  var player: String?

  /// Far larger than any secret.
  private static let maximumBytes = 64 * 1024

  func validate() throws {
    guard player == nil || secretFile != nil else { throw ValidationError("--player goes with --secret-file.") }
  }

  /// Returns nil without a secret. Stores without a seal are read as usual.
  func request() throws -> SealRequest? {
    guard let secretFile else { return nil }
    guard let secret = try AtomicFile.read(URL(fileURLWithPath: secretFile), maximumBytes: Self.maximumBytes) else {
      throw CommandFailure(.noInput, "there is no file \(secretFile)", next: "--secret-file names a file with the game's secret")
    }
    return SealRequest(secret: secret, player: player)
  }
}
#endif
