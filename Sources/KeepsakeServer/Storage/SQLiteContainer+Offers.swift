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
      HeldOffer(id: try identifier(row[0]), parts: row[1], bytes: row[2], touchedMilliseconds: row[3])
    }
  }

  func items(of offer: OfferID) throws -> [OfferItems] {
    try rows("SELECT items FROM offerPart WHERE container = ? AND offer = ? ORDER BY number", [id, offer.bytes]).map {
      row in
      try decode(OfferItems.self, row[0])
    }
  }

  mutating func hold(_ items: OfferItems, as part: OfferPart, now: Int64) throws {
    try run(
      "INSERT INTO offerPart (container, offer, number, size, touched, items) VALUES (?, ?, ?, ?, ?, ?)",
      [id, part.offer.bytes, part.number, items.size, now, try encode(items)])
  }

  mutating func dropOffer(_ offer: OfferID) throws {
    try run("DELETE FROM offerPart WHERE container = ? AND offer = ?", [id, offer.bytes])
  }
}
#endif
