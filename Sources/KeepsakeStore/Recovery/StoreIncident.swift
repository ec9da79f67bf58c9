/// Damage that a store encountered, and what it did about it.
package struct StoreIncident: Sendable, Hashable, Codable {
  package enum Kind: String, Sendable, Hashable, Codable {
    /// An index or a derived table was wrong and was rebuilt, with nothing lost; or the wallet was put in order from
    /// what is left of it.
    case rebuilt
    /// The database was damaged; what could be read went into a new one, and the damaged files were set aside.
    case recovered
    /// The disk failed while saving; the database was opened again and checked.
    case reopened
    /// Damage was found while running, and the record of it for the next opening could not be written.
    case unnoted
    /// The files were removed, moved or replaced while they were open.
    case removed
    /// A backup could not be made, for a reason that the one before didn't have.
    case notBackedUp
    /// A file beside the database could not be read, and was moved away.
    case setAside
  }

  package var kind: Kind
  /// A sentence that a person can act on.
  package var message: String

  package init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }
}
