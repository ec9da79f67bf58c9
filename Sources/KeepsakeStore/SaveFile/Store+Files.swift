extension Store {
  /// How saves exported from this store as files are sealed, and imported ones are opened.
  package var fileSeal: FileSeal { database.context.seal.files }
}

extension SealRequest {
  /// Returns the seal for a tool that was given a secret and reads a file that names its game.
  package func fileSeal(game: String) -> FileSeal { FileSeal(seal, kind: seal.kind, game: game) }
}
