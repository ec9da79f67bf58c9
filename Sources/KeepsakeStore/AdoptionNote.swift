package import KeepsakeReplication

/// What a store keeps of its being adopted by another one.
package struct AdoptionNote: Codable, Sendable {
  package static let factName = "adoption"

  /// Money that has left this store's wallet and that the other may not have yet.
  package struct Underway: Codable, Sendable {
    /// Names the store that it is for, beside this one.
    package var place: String
    /// The same for people.
    package var account: String
    package var parcel: WalletParcel

    package init(place: String, account: String, parcel: WalletParcel) {
      (self.place, self.account, self.parcel) = (place, account, parcel)
    }
  }
  package var underway: Underway?
  /// How far the wallet was handed over.
  package var handed: WalletParcel.Mark?
  /// Scores that others got, by the store that did.
  package var scores: [String: Set<ScoreID>] = [:]

  package init() {}
}

/// What a store keeps of what it adopted.
package struct AdoptedParcels: Codable, Sendable {
  package static let factName = "adopted"
  /// A parcel is looked for once more when the other store was set back to a backup from before its handing over was noted. The bank takes each
  /// operation once whatever stands here.
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
  package mutating func setAdoptedParcels(_ parcels: AdoptedParcels) throws { try setFact(AdoptedParcels.factName, parcels) }
}
