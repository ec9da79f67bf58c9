/// Marks identifiers of offers.
public enum OfferKind {}
/// Identifies what a device offers in several requests.
package typealias OfferID = Identifier<OfferKind>

/// Marks a request as one of several that the cloud accepts together or not at all.
package struct OfferPart: Hashable, Sendable {
  package var offer: OfferID
  /// Starts at 0, without gaps.
  package var number: Int
  package var isLast: Bool

  package init(offer: OfferID, number: Int, isLast: Bool) {
    self.offer = offer
    self.number = number
    self.isLast = isLast
  }
}

/// The items of a part, which the cloud keeps until the last one arrives.
package struct OfferItems: Hashable, Sendable, Codable {
  package var cells: [CellUpdate]
  package var versions: [VersionRecord]

  package init(cells: [CellUpdate], versions: [VersionRecord]) {
    self.cells = cells
    self.versions = versions
  }

  /// The approximate size of the items in a message, in bytes.
  package var size: Int { cells.reduce(0) { $0 + $1.size } + versions.reduce(0) { $0 + $1.size } }
}

/// An offer whose first parts the cloud keeps.
package struct HeldOffer: Hashable, Sendable {
  package var id: OfferID
  package var parts: Int
  package var bytes: Int
  /// When its newest part arrived.
  package var touchedMilliseconds: Int64

  package init(id: OfferID, parts: Int, bytes: Int, touchedMilliseconds: Int64) {
    self.id = id
    self.parts = parts
    self.bytes = bytes
    self.touchedMilliseconds = touchedMilliseconds
  }
}

extension ExchangeRequest {
  /// Returns the request that this last part and the parts before it form together.
  package func joined(with parts: [OfferItems]) -> ExchangeRequest {
    var whole = self
    whole.part = nil
    whole.cells = parts.flatMap(\.cells) + cells
    whole.versions = parts.flatMap(\.versions) + versions
    return whole
  }
}

// {"offer": id, "number": 2, "last": true}
extension OfferPart: Codable {
  private enum CodingKeys: String, CodingKey {
    case offer, number, last
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    offer = try container.decode(OfferID.self, forKey: .offer)
    number = try container.decode(Int.self, forKey: .number)
    isLast = try container.decodeFlag(forKey: .last)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(offer, forKey: .offer)
    try container.encode(number, forKey: .number)
    try container.encodeIfTrue(isLast, forKey: .last)
  }
}
