#if Cloud
/// Why a manifest, or a path in it, says nothing about where a game keeps its saves.
struct GameManifestError: Error, Hashable, Sendable, CustomStringConvertible {
  enum Code: String, Sendable {
    /// There is no file.
    case missing
    /// The file is larger than a manifest may be.
    case tooLarge
    /// It isn't YAML, or has another shape than a manifest.
    case form
    /// It doesn't have the game.
    case unknownGame
    /// A path has a token that no manifest has, or at a place where it has no meaning.
    case token
    /// A path isn't absolute, or leads out of what is known.
    case path
  }
  var code: Code
  var message: String
  /// The game's name, the key or the path in which it is.
  var place: String?
  var next: String?

  init(_ code: Code, _ message: String, at place: String? = nil, next: String? = nil) {
    self.code = code
    self.message = message
    self.place = place
    self.next = next
  }

  var description: String { place.map { "\($0): \(message)" } ?? message }
}
#endif
