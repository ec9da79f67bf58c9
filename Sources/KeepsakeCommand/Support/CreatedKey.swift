#if Cloud
import KeepsakeServer

/// A new key as the command that made it prints it, once: only a hash of it is kept.
struct CreatedKey: Encodable {
  /// The folder of the cloud's data.
  var path: String
  var name: String
  /// What the key allows; nil for a key without scopes.
  var scopes: [AdminScope]?
  var key: String

  /// Shows the key alone, which may go into a file as it is, or everything as JSON.
  func show(json: Bool) throws { if json { try Output.document(self) } else { Output.text(key) } }
}
#endif
