import Testing

@testable import KeepsakeReplication

/// Contents whose downloads failed.
struct ContentFailuresTests {
  private let one = Samples.hash(1)
  private let two = Samples.hash(2)

  @Test("a content is given up when it reaches the maximum number of failures, and other contents aren't")
  func counting() {
    var failures = ContentFailures()
    #expect(!failures.failed(one, atMost: 3) && !failures.failed(one, atMost: 3) && !failures.failed(two, atMost: 3))
    #expect(failures.givenUp.isEmpty)
    #expect(failures.failed(one, atMost: 3) == true)
    #expect(failures.givenUp == [one])
  }

  @Test("a content that was given up gets all its attempts again; one that wasn't keeps its count")
  func retry() {
    var failures = ContentFailures()
    for _ in 0..<2 { _ = failures.failed(one, atMost: 2) }
    _ = failures.failed(two, atMost: 2)
    failures.retry(one)
    failures.retry(two)
    #expect(failures.givenUp.isEmpty)
    #expect(failures.failed(one, atMost: 2) == false)
    #expect(failures.failed(two, atMost: 2) == true)
  }

  @Test("a content that is gone counts as gone until an exchange has looked for it")
  func gone() {
    var failures = ContentFailures()
    failures.isGone(one)
    failures.isGone(two)
    failures.looked(for: [one])
    #expect(failures.gone == [two])
    failures.giveUp(one)
    failures.reset()
    #expect(failures.gone.isEmpty && failures.givenUp.isEmpty)
  }
}
