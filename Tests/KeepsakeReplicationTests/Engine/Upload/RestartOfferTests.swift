import Foundation
import KeepsakeSimulation
import Testing

@testable import KeepsakeReplication

/// All that a store holds, offered in as many requests as that takes.
struct RestartOfferTests {
  private let groups = (1...5).map { Samples.group(Int64($0), versions: [UInt64($0)], isPiece: true) }
  private let known = Dictionary(uniqueKeysWithValues: (1...5).map { (Samples.id($0), Samples.record($0)) })

  private func limits(versions: Int) -> RequestLimits {
    var options = DeviceEngine.Options()
    options.maximumVersions = versions
    return RequestLimits(options, isSingle: false)
  }

  /// The next part, and the ids of its groups.
  private func next(
    _ offer: inout RestartOffer, versions: Int = 2, of groups: [OutboxGroup]? = nil
  ) -> (part: OfferPart, groups: [Int64])? {
    var random = SeededGenerator(seed: 1)
    return offer.nextPart(of: groups ?? self.groups, known, limits(versions: versions), using: &random)
      .map { ($0.part, $0.groups.map(\.id)) }
  }

  @Test("an offer that fits into one request isn't split into parts")
  func whole() {
    var offer = RestartOffer()
    #expect(offer.groups(of: groups, known, limits(versions: 100)) == groups)
    #expect(next(&offer, versions: 100) == nil && offer.parts == nil)
  }

  @Test("parts follow one another without gaps, and the last one is marked")
  func parts() throws {
    var offer = RestartOffer()
    var seen: [[Int64]] = []
    for number in 0..<3 {
      let part = try #require(next(&offer))
      #expect(part.part.number == number && part.part.isLast == (number == 2))
      #expect(part.part.offer == offer.parts?.id)
      seen.append(part.groups)
      #expect(offer.kept(number + 1, of: part.part, patience: 8) == false)
    }
    #expect(seen == [[1, 2], [3, 4], [5]])
  }

  @Test("once a part has been sent the offer stays the same, whatever is queued by then")
  func unchanged() throws {
    var offer = RestartOffer()
    let part = try #require(next(&offer))
    _ = offer.kept(1, of: part.part, patience: 8)
    #expect(offer.groups(of: Array(groups.prefix(1)), known, limits(versions: 2)) == groups)
    #expect(next(&offer, of: Array(groups.prefix(1)))?.groups == [3, 4])
    offer.dropParts()
    #expect(offer.groups(of: Array(groups.prefix(1)), known, limits(versions: 2)).count == 1)
  }

  @Test("parts that the cloud lost are sent again; a part that it has no room for waits")
  func setbacks() {
    var offer = RestartOffer()
    for _ in 0..<2 {
      let sent = next(&offer)
      _ = offer.kept(1, of: sent?.part, patience: 8)
    }
    offer.tookPart()
    let last = next(&offer)
    #expect(last?.part.number == 2)
    // The first parts are gone: they are sent again at once.
    #expect(offer.kept(0, of: last?.part, patience: 8) == false)
    let first = next(&offer)
    #expect(first?.groups == [1, 2])
    // There is no room for this one.
    #expect(offer.kept(0, of: first?.part, patience: 8) == true)
  }

  @Test("a device pauses after the cloud has lost parts several times")
  func patience() {
    var offer = RestartOffer()
    var waits: [Bool] = []
    for _ in 0..<4 {
      let first = next(&offer)
      _ = offer.kept(1, of: first?.part, patience: 2)
      let second = next(&offer)
      waits.append(offer.kept(0, of: second?.part, patience: 2))
    }
    #expect(waits == [false, false, true, false])
  }

  @Test("a response about another offer changes nothing")
  func strangers() {
    var offer = RestartOffer()
    #expect(
      offer.kept(1, of: OfferPart(offer: OfferID(high: 0, low: 1), number: 0, isLast: false), patience: 0) == false)
    _ = next(&offer)
    #expect(
      offer.kept(1, of: OfferPart(offer: OfferID(high: 0, low: 1), number: 1, isLast: false), patience: 0) == false)
    #expect(offer.kept(1, of: nil, patience: 0) == false)
    #expect(offer.parts?.kept == 0)
  }

  @Test("a new epoch waits for uploads and forgets the parts of the one before")
  func begin() {
    var offer = RestartOffer()
    _ = next(&offer)
    offer.begin()
    #expect(offer.waitsForUploads && offer.parts == nil)
    offer.stopWaiting()
    #expect(!offer.waitsForUploads)
  }

  @Test("if the cloud claims to keep more parts than exist, the last one is sent; if fewer than none, the first")
  func senselessCounts() throws {
    var offer = RestartOffer()
    let first = try #require(next(&offer))
    _ = offer.kept(99, of: first.part, patience: 8)
    let last = try #require(next(&offer))
    #expect(last.part.number == 2 && last.part.isLast)
    _ = offer.kept(-1, of: last.part, patience: 8)
    #expect(next(&offer)?.part.number == 0)
  }

  @Test("an offer has no more parts and bytes than a cloud keeps of it")
  func bounded() {
    let count = ExchangeRules.maximumOfferParts + 1
    let many = (1...count).map { Samples.group(Int64($0), versions: [UInt64($0)], isPiece: true) }
    let small = Dictionary(uniqueKeysWithValues: (1...UInt64(count)).map { (Samples.id($0), Samples.record($0)) })
    #expect(RestartOffer().groups(of: many, small, limits(versions: 1)).count == ExchangeRules.maximumOfferParts)
    let large = Dictionary(
      uniqueKeysWithValues: (1...UInt64(count)).map { number in
        var record = Samples.record(number)
        record.metadata.thumbnail = Data(count: 60_000)
        return (record.id, record)
      })
    let taken = RestartOffer().groups(of: many, large, limits(versions: 1))
    let bytes = taken.reduce(0) { $0 + $1.size(large) }
    #expect(bytes <= ExchangeRules.maximumOfferBytes && bytes + many[0].size(large) > ExchangeRules.maximumOfferBytes)
  }
}
