#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

/// Some of the banks of a cloud, in the order of their containers: all of them may not fit into memory.
struct BankPage {
  static let size = 200

  struct Entry {
    var container: ContainerID
    /// In the cloud's epoch, also if nobody has told it of that.
    var bank: Bank
  }
  private(set) var entries: [Entry] = []
  /// How many banks can't be read.
  private(set) var unreadable = 0
  /// After which container the next page begins; nil if there is none.
  private(set) var next: ContainerID?

  /// - Parameter epoch: The cloud's.
  init(after container: ContainerID?, epoch: UInt64, in db: Database) throws {
    let rows = try Row.fetchAll(
      db.cachedStatement(
        sql: "SELECT id, bank FROM container WHERE id > ? AND bank IS NOT NULL ORDER BY id LIMIT \(Self.size)"),
      arguments: [container?.bytes ?? Data()])
    try self.init(rows.map { (try $0.decode(atIndex: 0), try $0.decode(Data.self, atIndex: 1)) }, epoch: epoch)
  }

  /// - Parameter rows: Up to `size` of them, those of containers without a bank too.
  init(_ rows: [(container: Data, bank: Data?)], epoch: UInt64) throws {
    for row in rows {
      guard let id = ContainerID(bytes: row.container) else {
        throw ServerError(.damaged, "A container's identifier can't be read.")
      }
      if rows.count == Self.size { next = id }
      guard let bank = row.bank else { continue }
      do {
        let state = try Schema.decoded(BankState.self, bank)
        entries.append(Entry(container: id, state, epoch: epoch))
      } catch let error as ServerError where error.code == .damaged {
        // The others must still be found.
        unreadable += 1
      }
    }
  }
}

extension BankPage.Entry {
  init(container: ContainerID, _ state: BankState, epoch: UInt64) {
    self.container = container
    bank = Bank(state)
    bank.setBack(to: epoch)
  }
}
#endif
