extension Store {
  /// How saves that leave this store as files are sealed, and those that come.
  package var fileSeal: FileSeal { database.context.seal.files }
}

extension SealRequest {
  /// For a tool that was given a secret and meets a file that says whose it is.
  package func fileSeal(game: String) -> FileSeal { FileSeal(seal, kind: seal.kind, game: game) }
}
