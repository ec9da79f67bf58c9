/// How much memory decoding one archive may still take: counted before it is taken, and never given back.
@usableFromInline struct MemoryBudget {
  @usableFromInline var left: Int
  private let limit: Int
  private let elements: Int

  init(_ limits: ArchiveLimits) {
    limit = max(0, limits.memoryBytes)
    elements = limits.elements
    left = limit
  }

  /// For a list or table: also checks how many there are.
  mutating func claimElements(_ count: Int, of bytes: Int, and own: Int, at offset: Int) throws {
    guard count <= elements else {
      throw ArchiveError(.limit, "A list has \(count) elements; the limit is \(elements)", offset: offset)
    }
    try claim(count, of: bytes, at: offset)
    try claim(1, of: own, at: offset)
  }

  mutating func claim(_ count: Int, of bytes: Int, at offset: Int) throws {
    let (total, isTooMuch) = count.multipliedReportingOverflow(by: bytes)
    guard !isTooMuch, total <= left else {
      throw ArchiveError(
        .limit, "Decoding would take more than \(limit) bytes of memory: raise ArchiveLimits.memoryBytes if the archive is right",
        offset: offset)
    }
    left -= total
  }
}

extension ArchiveReader {
  /// A count of elements that take so many bytes of memory each, in a collection that takes some itself unless it is empty; nothing has
  /// been taken yet.
  @inlinable @inline(__always) mutating func takeCount(of bytes: Int, and own: Int) throws -> Int {
    let count = try takeCount()
    if count > 0 { try claimElements(count, of: bytes, and: own) }
    return count
  }

  @usableFromInline mutating func claimElements(_ count: Int, of bytes: Int, and own: Int) throws {
    try core.memory.claimElements(count, of: bytes, and: own, at: offset)
  }

  /// Of text and data.
  @usableFromInline mutating func claim(_ bytes: Int) throws { try core.memory.claim(bytes, of: 1, at: offset) }
}
