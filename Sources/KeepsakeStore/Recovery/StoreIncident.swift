/// Damage that a store met by itself, and what it did about it.
package struct StoreIncident: Sendable, Hashable, Codable {
  package enum Kind: String, Sendable, Hashable, Codable {
    /// An index or a table that derives from others didn't agree with them and was made anew, and nothing was lost; or the wallet was put
    /// in order from what is left of it.
    case rebuilt
    /// The database was damaged; what could be read went into a new one and the damaged files were set aside.
    case recovered
    /// The disk failed while saving; the database was opened anew and checked.
    case reopened
    /// Damage was met while running, and the note for the next opening could not be written.
    case unnoted
  }

  package var kind: Kind
  /// A sentence that a person can act on.
  package var message: String

  package init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }
}
