/// The memory that decoding one archive may still allocate. Counted before each allocation and never returned.
@usableFromInline struct MemoryBudget {
  @usableFromInline var left: Int
  private let limit: Int
  private let elements: Int

  init(_ limits: ArchiveLimits) {
    limit = max(0, limits.memoryBytes)
    elements = limits.elements
    left = limit
  }

  /// Claims memory for a list or table, and checks the number of its elements.
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
        .limit,
        """
        Decoding would take more than \(limit) bytes of memory: raise ArchiveLimits.memoryBytes if the archive is valid
        """,
        offset: offset)
    }
    left -= total
  }
}

extension ArchiveReader {
  /// Reads the number of elements and claims memory for them: `bytes` for each element, and `own` for the collection
  /// unless it is empty. Nothing has been allocated yet.
  @inlinable @inline(__always) mutating func takeCount(of bytes: Int, and own: Int) throws -> Int {
    let count = try takeCount()
    if count > 0 { try claimElements(count, of: bytes, and: own) }
    return count
  }

  @usableFromInline mutating func claimElements(_ count: Int, of bytes: Int, and own: Int) throws {
    try core.memory.claimElements(count, of: bytes, and: own, at: offset)
  }

  /// Claims memory for text and data.
  @usableFromInline mutating func claim(_ bytes: Int) throws { try core.memory.claim(bytes, of: 1, at: offset) }
}
