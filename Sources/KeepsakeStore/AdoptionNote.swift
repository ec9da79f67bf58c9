package import KeepsakeReplication

/// A store's record of being adopted by another one.
package struct AdoptionNote: Codable, Sendable {
  package static let factName = "adoption"

  /// Money that has left this store's wallet and that the other one may not have yet.
  package struct Underway: Codable, Sendable {
    /// The name of the receiving store, which is beside this one.
    package var place: String
    /// The receiving account, for people.
    package var account: String
    /// The money of a wallet that no bank knows; nil if there is none.
    package var parcel: WalletParcel?
    /// The wallets that banks know, which the receiving store has to settle; nil for none.
    package var wallets: [FormerWallet]?

    package init(place: String, account: String, parcel: WalletParcel? = nil, wallets: [FormerWallet]? = nil) {
      (self.place, self.account, self.parcel, self.wallets) = (place, account, parcel, wallets)
    }

    /// The currencies of what is on its way.
    package var currencies: Set<String> {
      let operations = parcel?.operations ?? []
      return Set(operations.map(\.currency) + operations.flatMap(\.movements).map(\.currency))
        .union((wallets ?? []).flatMap(\.currencies))
    }
  }
  package var underway: Underway?
  /// How much of the wallet was handed over.
  package var handed: WalletParcel.Mark?
  /// Scores that other stores received, by the receiving store.
  package var scores: [String: Set<ScoreID>] = [:]

  package init() {}
}

/// A store's record of what it adopted.
package struct AdoptedParcels: Codable, Sendable {
  package static let factName = "adopted"
  /// A parcel is looked up again only if the other store was restored from a backup made before it recorded the
  /// handover. The bank accepts each operation only once, whatever is recorded here.
  private static let maximum = 256

  private var parcels: [OperationID] = []

  package init() {}

  package func contains(_ id: OperationID) -> Bool { parcels.contains(id) }

  package mutating func append(_ id: OperationID) {
    parcels.append(id)
    if parcels.count > Self.maximum { parcels.removeFirst() }
  }
}

extension StoreTransaction {
  package func adoptionNote() throws -> AdoptionNote { try fact(AdoptionNote.factName) ?? AdoptionNote() }
  package mutating func setAdoptionNote(_ note: AdoptionNote) throws { try setFact(AdoptionNote.factName, note) }
  package func adoptedParcels() throws -> AdoptedParcels { try fact(AdoptedParcels.factName) ?? AdoptedParcels() }
  package mutating func setAdoptedParcels(_ parcels: AdoptedParcels) throws {
    try setFact(AdoptedParcels.factName, parcels)
  }
}
