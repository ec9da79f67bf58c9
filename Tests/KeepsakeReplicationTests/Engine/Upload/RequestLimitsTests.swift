import Testing

@testable import KeepsakeReplication

/// How much of the outbox one exchange takes.
struct RequestLimitsTests {
  private func limits(versions: Int = 100, bytes: Int = 1 << 20, isSingle: Bool = false) -> RequestLimits {
    var options = DeviceEngine.Options()
    (options.maximumVersions, options.maximumBytes) = (versions, bytes)
    return RequestLimits(options, isSingle: isSingle)
  }

  private let groups = (1...4).map { Samples.group(Int64($0), versions: [UInt64($0)]) }
  private let known = Dictionary(uniqueKeysWithValues: (1...4).map { (Samples.id($0), Samples.record($0)) })

  @Test("the oldest groups are sent together as far as they fit")
  func fitting() {
    #expect(limits().fitting(groups, known).count == 4)
    #expect(limits(versions: 3).fitting(groups, known).map(\.id) == [1, 2, 3])
    let two = groups.prefix(2).reduce(0) { $0 + $1.size(known) }
    #expect(limits(bytes: two).fitting(groups, known).count == 2)
  }

  @Test("the first group is sent whatever its size, and alone if groups are sent one by one")
  func first() {
    #expect(limits(versions: 0).fitting(groups, known).map(\.id) == [1])
    #expect(limits(isSingle: true).fitting(groups[1...], known).map(\.id) == [2])
    #expect(limits().fitting([], known).isEmpty)
  }
}
