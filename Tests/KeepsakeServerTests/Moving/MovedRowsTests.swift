#if Cloud && PostgreSQL
import Foundation
import GRDB
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// What is moved of a cloud: all of it.
@Suite(
  "Rows that are moved between SQLite and PostgreSQL", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct MovedRowsTests {
  private static let owners = (1...5).map { ContainerID(high: 7, low: $0) }

  @Test("each value of each table comes back as it was", arguments: TestContents.all)
  func everything(kind: TestContents) async throws {
    try await MoveLab.with { lab in
      try await lab.storage().close()
      try lab.fill(Self.owners)
      let before = try MoveLab.dump(lab.data)
      let temporary = try TemporaryFolder()
      var request = lab.request
      request.contents = [try kind.place(in: temporary)]
      let summary = try await CloudMove.move(request)
      #expect(summary.isFinished && summary.contents == Self.owners.count && summary.stoppedMilliseconds != nil)
      #expect(try lab.count("content_object") == Int64(2 * Self.owners.count))
      request.data = lab.folder.appendingPathComponent("back")
      let back = try await CloudMove.moveBack(request)
      #expect(back.isFinished)
      let after = try MoveLab.dump(request.data)
      #expect(Array(Set(before).subtracting(after).prefix(3)) == [])
      #expect(Array(Set(after).subtracting(before).prefix(3)) == [])
      #expect(after.count == before.count && before.count > 300)
      let files = [lab.data, request.data].map { ContentFiles(folder: $0.appendingPathComponent("contents")) }
      let names = try files[0].names()
      #expect(try files[1].names() == names)
      for name in names {
        let bytes = try files.map { try Data(contentsOf: $0.folder.appendingPathComponent(name)) }
        #expect(bytes[0] == bytes[1])
      }
      withExtendedLifetime(temporary) {}
    }
  }

  @Test("a player moves from one PostgreSQL database into another, with everything, and leaves nothing")
  func onePlayer() async throws {
    try await MoveLab.with { lab in
      try await lab.storage().close()
      try lab.fill(Self.owners)
      _ = try await CloudMove.move(lab.request)
      try await MoveLab.with { other in
        try await TestDatabase.storage(at: other.address).close()
        let pools = [lab, other].map { PostgreSQLPool(TestDatabase.settings($0.address), connections: 2) }
        let places = try await [
          ContentPlaces.open([.rows], pool: pools[0], clock: { 5 }, logger: Logger(label: "test")),
          ContentPlaces.open([.rows], pool: pools[1], clock: { 5 }, logger: Logger(label: "test")),
        ]
        let owner = Self.owners[2]
        @Sendable func digest(_ index: Int) async throws -> MovedDigest {
          try await pools[index].changing {
            try MovedDigest.of(owner.bytes, MovedTable.ofPlayer, in: PostgreSQLMovedRows($0))
          }
        }
        let before = try await digest(0)
        let player = MovedPlayer(
          container: owner, source: (pools[0], places[0]),
          target: MovedContentTarget(pool: pools[1], places: places[1], clock: { 5 }), folder: lab.folder)
        try await player.move()
        #expect(try await digest(1) == before && before.rows > 60)
        #expect(try await digest(0).rows == 0)
        #expect(try lab.count("container") == Int64(Self.owners.count - 1))
        #expect(try other.count("content_object") == 2 && other.count("container") == 1)
        #expect(try lab.count("content_object WHERE taken = -1") == 2)
        await #expect(throws: ServerError.self) { try await player.move() }
        for pool in pools { await pool.finish() }
      }
    }
  }

  @Test("what is moved names each table and each column of both databases")
  func schemas() async throws {
    try await MoveLab.with { lab in
      try await lab.storage().close()
      try await TestDatabase.storage(at: lab.address).close()
      let all = MovedTable.ofPlayer + MovedTable.ofCloud
      let queue = try AdminDatabase.open(lab.data)
      let local = try await queue.read { db in
        try Dictionary(
          uniqueKeysWithValues: MoveLab.tables(in: db).map { name in
            (name, Set(try MoveLab.columns(of: name, in: db).map(\.name)))
          })
      }
      try queue.close()
      // In SQLite, what devices have reached is a column, and whether a version is a head is a table.
      for (name, columns) in local {
        let table = try #require(all.first { $0.local == name }, "\(name) isn't moved")
        var named = Set(table.columns.map(\.local) + (table.owner.isEmpty ? [] : [table.localOwner]))
        switch table.layout {
        case .containers: named.insert("reached")
        case .versions: named.remove("head")
        case .contents: named.remove("leans")
        case .plain, .numbered, .reached: break
        }
        #expect(columns == named, "\(name)")
      }
      let rows = try PostgreSQLConnection(TestDatabase.settings(lab.address)).run([
        PostgreSQLStatement(
          """
          SELECT table_name::text, column_name::text FROM information_schema.columns
          WHERE table_schema = current_schema()
          """)
      ])
      var remote: [String: Set<String>] = [:]
      for row in rows[0] { remote[try row.text(0), default: []].insert(try row.text(1)) }
      for (name, columns) in remote where !MovedTable.remoteOnly.contains(name) {
        let table = try #require(all.first { $0.name == name }, "\(name) isn't moved")
        #expect(columns == Set(table.columns.map(\.name) + (table.owner.isEmpty ? [] : [table.owner])), "\(name)")
      }
      #expect(Set(remote.keys).subtracting(MovedTable.remoteOnly) == Set(all.map(\.name)))
      #expect(MovedTable.remoteOnly.isSubset(of: remote.keys))
    }
  }

  @Test("a digest tells apart what differs in one bit, in what is null, and in the table")
  func digests() throws {
    let table = try #require(MovedTable.ofPlayer.first)
    func digest(_ tables: [MovedTable], _ rows: [MovedRow]) -> MovedDigest {
      var digest = MovedDigest()
      for table in tables { digest.begin(table) }
      for row in rows { digest.add(row) }
      digest.finish()
      return digest
    }
    let digests = [
      digest([table], []), digest([table], [[.number(0)]]), digest([table], [[.null]]),
      digest([table], [[.bytes(Data())]]), digest([table], [[.bytes(Data([0]))]]),
      digest([table], [[.number(1)]]), digest([table], [[.number(0)], [.number(0)]]),
      digest([MovedTable.uses], [[.number(0)]]), digest([table], [[.bytes(Data([0])), .null]]),
    ]
    for (index, one) in digests.enumerated() {
      for other in digests.dropFirst(index + 1) { #expect(one != other) }
    }
    #expect(digest([table], [[.number(0)]]) == digests[1])
  }
}
#endif
