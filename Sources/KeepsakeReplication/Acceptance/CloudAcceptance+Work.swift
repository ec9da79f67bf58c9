// What a request costs the cloud, known before anything is read for it.
extension ExchangeRequest {
  /// About how much the cloud has to do for this request, in units of one covered version looked up and marked: some
  /// ten microseconds. Requests of a device that plays have ten to a hundred.
  package var work: Int {
    var sum = cells.count * 2 + versions.count * 4 + contents.count * 4 + damaged.count
    sum += coverCount + contentCount
    for content in contents { sum += content.bytes.count / 4096 }
    return sum
  }

  // A version with more than any may have is refused by its name, and nothing else of it is looked at.
  private var coverCount: Int { versions.reduce(0) { $0 + min($1.covers.count, ExchangeRules.maximumCovers) } }
  private var contentCount: Int { versions.reduce(0) { $0 + min($1.contents.count, ExchangeRules.maximumContents) } }

  /// How many of each kind of item the request has, in words, and how many it may have.
  var counts: [(what: String, count: Int, limit: Int)] {
    [
      ("cells", cells.count, ExchangeRules.maximumCells),
      ("versions", versions.count, ExchangeRules.maximumVersions),
      ("contents", contents.count, ExchangeRules.maximumInlineContents),
      ("damaged contents", damaged.count, ExchangeRules.maximumDamaged),
      ("covers", coverCount, ExchangeRules.maximumRequestCovers),
      ("contents of versions", contentCount, ExchangeRules.maximumRequestContents),
      ("units of work", work, ExchangeRules.maximumWork),
    ]
  }
}

extension CloudAcceptance {
  /// Returns about how many bytes the response to a request has at most, as far as changes and contents go.
  ///
  /// - Parameter behind: How many changes the device doesn't know yet.
  package static func largestResponse(to request: ExchangeRequest, behind: UInt64) -> Int {
    let changes = Int(min(behind, UInt64(ExchangeRules.maximumChanges)))
    let room = request.cursor.seq == 0 || request.cursor.ahead != nil ? catchUpBytes : answerBytes
    return responseHeadBytes + min(room + inlineTotalBytes, changes * ExchangeRules.maximumCellBytes)
  }

  /// A response without changes, with the bank's reply.
  private static let responseHeadBytes = 8 * 1024
}
