/// Why a whole request can't be accepted: the sender doesn't speak this protocol, or is malicious.
package enum ExchangeError: Error, Hashable, Sendable, CustomStringConvertible {
  case unsupportedProtocol(Int)
  case malformed(String)
  /// More of something than one request, or one container, may have.
  case tooMany(String)
  /// More of something in one request than the limit. Smaller requests may be accepted.
  case exceeds(String, count: Int, limit: Int)

  package var description: String {
    switch self {
    case .unsupportedProtocol(let version):
      "protocol \(version) isn't supported: this side uses protocol \(ExchangeRequest.currentProtocol)"
    case .malformed(let what): "the request is invalid: \(what)"
    case .tooMany(let what): "too many \(what)"
    case .exceeds(let what, let count, let limit): "\(count) \(what) in one request; at most \(limit) are allowed"
    }
  }
}
