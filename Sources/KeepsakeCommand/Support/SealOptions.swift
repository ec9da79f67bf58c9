#if Cloud
import ArgumentParser
import Foundation
import KeepsakeStore

/// What a command needs to read the store of a game that seals it.
struct SealOptions: ParsableArguments {
  @Option(
    help:
      """
      A file with the game's secret, byte for byte, for stores and exports with a seal. Without it, signed data is \
      read but not verified.
      """,
    completion: .file())
  var secretFile: String?

  @Option(help: "With --secret-file: the player to whom the game binds its stores, if it does so.")
  var player: String?

  /// Far larger than any secret.
  private static let maximumBytes = 64 * 1024

  func validate() throws {
    guard player == nil || secretFile != nil else { throw ValidationError("--player needs --secret-file.") }
  }

  /// Returns nil without a secret. Stores without a seal are read as usual.
  func request() throws -> SealRequest? {
    guard let secretFile else { return nil }
    guard
      let secret = try AtomicFile.read(
        // Such as a shell's <(...), which keeps the secret off the disk.
        URL(fileURLWithPath: secretFile), maximumBytes: Self.maximumBytes, acceptsPipes: true)
    else {
      throw CommandFailure(
        .noInput, "there is no file \(secretFile)", next: "name a file with the game's secret after --secret-file")
    }
    return SealRequest(secret: secret, player: player)
  }
}
#endif
