#if Cloud
import ArgumentParser

/// `keepsake assets`: the manifest of a game's assets.
struct AssetsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "assets",
    abstract: "Write and check the manifest of the files that ship with a game.",
    discussion:
      "A game loads its images, sounds and levels through AssetLibrary, which compares each with the manifest.",
    subcommands: [AssetsManifestCommand.self, AssetsVerifyCommand.self])
}
#endif
