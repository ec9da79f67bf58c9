import Testing

@testable import KeepsakeReplication

/// What the commits of a running game pass on to the next ones, as a value.
@Suite struct SaveLineageTests {
  private func id(_ number: UInt64) -> VersionID { VersionID(high: 0, low: number) }

  @Test("a save replaces what was loaded, or the game's own newest save since that load")
  func followsLoads() {
    var lineage = SaveLineage()
    let first = SaveOrigin(load: 1, loaded: [id(1), id(2)])
    #expect(lineage.versions(of: first, in: "main") == [id(1), id(2)])
    lineage.insert(id(3), from: first, in: "main")
    #expect(lineage.versions(of: first, in: "main") == [id(3)])
    #expect(lineage.versions(of: first, in: "other") == [id(1), id(2)])
    #expect(lineage.versions(of: SaveOrigin(load: 2, loaded: [id(7)]), in: "main") == [id(7)])
    #expect(lineage.newest(in: "main") == id(3) && lineage.newest(in: "other") == nil)
  }

  @Test("a version is followed through all its substitutes, even if a slot's substitution is reversed")
  func followsSubstitutes() {
    var lineage = SaveLineage()
    lineage.substitute([id(1): id(2)])
    lineage.substitute([id(2): id(3)])
    #expect(lineage.current([id(1), id(2), id(9)]) == [id(3), id(3), id(9)])
    lineage.substitute([id(3): id(1)])
    #expect(lineage.current([id(1), id(2), id(3)]) == [id(1), id(1), id(1)])
    lineage.insert(id(3), from: SaveOrigin(load: 1, loaded: []), in: "main")
    #expect(lineage.versions(of: SaveOrigin(load: 1, loaded: []), in: "main") == [id(1)])
    #expect(lineage.versions(of: SaveOrigin(load: 2, loaded: [id(2)]), in: "main") == [id(1)])
    lineage.substitute([id(2): id(4)])
    #expect(lineage.current([id(2), id(3)]) == [id(4), id(1)])
  }

  @Test("a commit that fails leaves no trace in the lineage: the next save replaces the newest one that is durable")
  func failedCommits() {
    let origin = SaveOrigin(load: 1, loaded: [id(1)])
    var lineage = SaveLineage()
    lineage.insert(id(2), from: origin, in: "main")
    // Each commit gets what the one before it returned; what a failed one returned is dropped.
    var failed = lineage
    failed.insert(id(3), from: origin, in: "main")
    failed.insert(id(4), from: SaveOrigin(load: 2, loaded: []), in: "other")
    failed.substitute([id(2): id(5)])
    #expect(lineage.versions(of: origin, in: "main") == [id(2)] && lineage.newest(in: "other") == nil)
    #expect(lineage.current([id(2)]) == [id(2)])
    lineage.insert(id(6), from: origin, in: "main")
    #expect(lineage.versions(of: origin, in: "main") == [id(6)] && lineage.newest(in: "main") == id(6))
    #expect(failed.versions(of: origin, in: "main") == [id(3)] && failed.newest(in: "main") == id(3))
  }
}
