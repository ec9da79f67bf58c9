#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

// The stored parts of offers whose last part hasn't arrived yet. They don't count as used room.
extension SQLiteContainer {
  func heldOffers() throws -> [HeldOffer] {
    try rows(
      """
      SELECT offer, count(*), sum(size), max(touched) FROM offerPart WHERE container = ? GROUP BY offer ORDER BY offer
      """,
      [id]
    ).map { row in
      HeldOffer(
        id: try identifier(row.decode(atIndex: 0)), parts: try row.decode(atIndex: 1),
        bytes: try row.decode(atIndex: 2), touchedMilliseconds: try row.decode(atIndex: 3))
    }
  }

  func items(of offer: OfferID) throws -> [OfferItems] {
    try rows("SELECT items FROM offerPart WHERE container = ? AND offer = ? ORDER BY number", [id, offer.bytes]).map {
      row in
      try decode(OfferItems.self, row.decode(atIndex: 0))
    }
  }

  /// - Parameter items: The part's items, encoded.
  func hold(_ part: WriteSet.Part, encoded items: Data) throws {
    try run(
      "INSERT INTO offerPart (container, offer, number, size, touched, items) VALUES (?, ?, ?, ?, ?, ?)",
      [id, part.part.offer.bytes, part.part.number, part.items.size, part.now, items])
  }

  mutating func dropOffer(_ offer: OfferID) throws {
    try run("DELETE FROM offerPart WHERE container = ? AND offer = ?", [id, offer.bytes])
  }
}
#endif
